// A preload for a process under test: at a step of a send or of a job, the process kills or freezes itself.
import { subscribe } from 'node:diagnostics_channel';

const { AT_STEP, AT_STEP_SIGNAL = 'SIGKILL' } = process.env;

for (const channel of ['communication-api:send', 'communication-api:job'])
  subscribe(channel, ({ step }) => {
    if (step === AT_STEP) process.kill(process.pid, AT_STEP_SIGNAL);
  });
