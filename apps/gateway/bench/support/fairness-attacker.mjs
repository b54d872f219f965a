// The noisy tenant of the topic fairness, in a process of its own.

import { answerWith } from 'headgate-bench/member';
import { ATTACKS } from './fairness-attacks.mjs';

const { attack: name } = JSON.parse(process.argv[2]);
const attack = ATTACKS[name];
let tally = {};
let stop = () => {};

const STEPS = {
  async prepare(port) {
    await attack.prepare?.(port, tally);
  },
  async start(port) {
    stop = attack.start(port, tally);
  },
  async stop() {
    stop();
  },
};

answerWith(async ({ step, port }) => {
  tally = step === 'stop' ? tally : {};
  await STEPS[step](port);
  return { statuses: tally };
});
