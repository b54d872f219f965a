import cluster, { type Worker } from 'node:cluster';
import { type Gateway, startGateway } from '../gateway.ts';
import { createLog } from '../operations/log.ts';
import { surviveErrors } from '../operations/survive.ts';
import { ListenError } from '../server/listen.ts';
import type { Call, CallError, CallReply } from './messages.ts';

/** Signals that a terminal or a supervisor sends to all processes. The primary says what they mean for a worker. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs a worker: a gateway that the primary starts and stops. */
export function runWorker(): void {
  const worker = cluster.worker as Worker;
  const log = createLog(1, { worker: worker.id });
  let starting: Promise<Gateway> | undefined;
  let stopping = false;
  for (const signal of SIGNALS) process.on(signal, () => {});
  surviveErrors(log);

  const exit = (code: number): void => void log.close().then(() => process.exit(code));
  const stop = async (): Promise<number> => {
    stopping = true;
    const gateway = await starting;
    return (await gateway?.stop()) ?? 0;
  };
  const reply = (reply: CallReply): Promise<void> =>
    // Without a primary there is no one to reply to.
    new Promise((resolve) => {
      if (process.send === undefined || !process.connected) resolve();
      else process.send(reply, undefined, {}, () => resolve());
    });

  const onCall = async ({ id, name, config }: Call): Promise<void> => {
    switch (name) {
      case 'start':
        if (config === undefined) return;
        // Metrics of all workers are served by the primary.
        starting = startGateway({ ...config, admin: undefined }, log);
        try {
          await reply({ id, result: (await starting).address });
        } catch (error) {
          await reply({ id, error: describeError(error) });
          exit(1);
        }
        break;
      case 'metrics':
        await reply({ id, result: (await (await starting)?.metrics()) ?? [] });
        break;
      case 'stop': {
        const cutOff = await stop();
        await reply({ id, result: { cutOff, metrics: (await (await starting)?.metrics()) ?? [] } });
        exit(0);
      }
    }
  };
  process.on('message', (call: Call) => {
    onCall(call).catch((error: unknown) => reply({ id: call.id, error: describeError(error) }));
  });
  worker.once('disconnect', () => {
    // Otherwise Node ends the process at once.
    worker.exitedAfterDisconnect = true;
    if (stopping) return;
    log.logger.error('the primary has ended: draining');
    void stop().then(
      () => exit(1),
      () => exit(1),
    );
  });
}

function describeError(error: unknown): CallError {
  if (error instanceof ListenError) {
    const { code, message } = error.cause as NodeJS.ErrnoException;
    return { message, listenCode: code ?? message };
  }
  return { message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}
