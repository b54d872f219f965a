import cluster, { type Worker } from 'node:cluster';
import type { Config } from '../config/schema.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { createLog } from '../operations/log.ts';
import { surviveErrors } from '../operations/survive.ts';
import { ListenError } from '../server/listen.ts';
import { type Call, type CallError, type CallReply, READY } from './messages.ts';

/** Signals that a terminal or a supervisor sends to all processes. The primary decides about them for a worker. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs a worker: a gateway that the primary starts and stops. */
export function runWorker(): void {
  const worker = cluster.worker as Worker;
  const log = createLog(1, { worker: worker.id });
  let starting: Promise<Gateway> | undefined;
  let isListening = false;
  /** Metrics of all workers are served by the primary. */
  const ownPart = (config: Config): Config => ({ ...config, admin: undefined });
  let stopping: Promise<number> | undefined;
  for (const signal of SIGNALS) process.on(signal, () => {});
  surviveErrors(log);

  const exit = (code: number): void => void log.close().then(() => process.exit(code));
  const stop = (): Promise<number> => {
    stopping ??= Promise.resolve(starting).then((gateway) => gateway?.stop() ?? 0);
    return stopping;
  };
  const reply = (reply: CallReply): Promise<void> =>
    // Without a primary a reply reaches no process.
    new Promise((resolve) => {
      if (process.send === undefined || !process.connected) resolve();
      else process.send(reply, undefined, {}, () => resolve());
    });

  const onCall = async ({ id, name, config }: Call): Promise<void> => {
    switch (name) {
      case 'start':
        starting = startGateway(ownPart(config as Config), log);
        try {
          const { address } = await starting;
          isListening = true;
          await reply({ id, result: address });
        } catch (error) {
          await reply({ id, error: describeError(error) });
          exit(1);
        }
        break;
      case 'reload': {
        const gateway = await (starting as Promise<Gateway>);
        await reply({ id, result: await gateway.reload(ownPart(config as Config)) });
        break;
      }
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
  void reply(READY);
  worker.once('disconnect', () => {
    // Otherwise Node ends the process at once.
    worker.exitedAfterDisconnect = true;
    // A worker listens by a message to the primary, which no longer answers. So the start would never end, nor a stop
    // that waits for it.
    if (!isListening) {
      exit(1);
      return;
    }
    if (stopping !== undefined) return;
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
