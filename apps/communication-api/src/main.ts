import { runCli } from './cli/cli.ts';
import type { RunningService } from './cli/start.ts';

/** A terminal and npm both pass on one Ctrl+C, so a second signal within this time is the same one. */
const SAME_SIGNAL_MS = 1_000;

const terminal = {
  out: (text: string) => void process.stdout.write(text),
  error: (text: string) => void process.stderr.write(text),
};

// A reader that wants no more, such as `head`, closes its end. The rest of the output is dropped.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });

// Before the service starts, a signal ends the process at once. The next start repeats a half-made database.
const result = await runCli(process.argv.slice(2), process.env, terminal);
if (typeof result === 'number') process.exitCode = result;
else stopOnSignals(result);

function stopOnSignals(service: RunningService): void {
  let stoppingSince: number | undefined;
  const onSignal = (): void => {
    if (stoppingSince !== undefined) {
      // The operator does not want to wait.
      if (performance.now() - stoppingSince > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    stoppingSince = performance.now();
    service.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        terminal.error(`${error instanceof Error ? error.stack : String(error)}\n`);
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
}
