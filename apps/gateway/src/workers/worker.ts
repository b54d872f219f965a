import cluster, { type Worker } from 'node:cluster';
import { callFigure } from '../admin/combined-figures.ts';
import { type Gateway, startGateway, type WorkerParts } from '../gateway.ts';
import { createLog } from '../operations/log.ts';
import type { MetricFamily } from '../operations/metrics.ts';
import { surviveErrors } from '../operations/survive.ts';
import { ListenError } from '../server/listen.ts';
import { EventOutbox } from './event-outbox.ts';
import {
  type Call,
  type CallError,
  type CallName,
  type CallReply,
  READY,
  type WorkerCalls,
  type WorkerEvents,
} from './messages.ts';

/** Signals that a terminal or a supervisor sends to all processes. The primary decides about them for a worker. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs a worker: a gateway that the primary starts and stops. */
export function runWorker(): void {
  const worker = cluster.worker as Worker;
  const log = createLog(1, { worker: worker.id });
  let starting: Promise<Gateway> | undefined;
  let isListening = false;
  let stopping: Promise<number> | undefined;
  for (const signal of SIGNALS) process.on(signal, () => {});
  surviveErrors(log);

  const exit = (code: number): void => void log.close().then(() => process.exit(code));
  const stop = (): Promise<number> => {
    stopping ??= Promise.resolve(starting).then((gateway) => gateway?.stop() ?? 0);
    return stopping;
  };
  const send = (message: CallReply | WorkerEvents): Promise<void> =>
    // Without a primary a message reaches no process.
    new Promise((resolve) => {
      if (process.send === undefined || !process.connected) resolve();
      else process.send(message, undefined, {}, () => resolve());
    });
  let outbox: EventOutbox | undefined;
  const parts = async (): Promise<WorkerParts> => (await (starting as Promise<Gateway>)).worker as WorkerParts;
  const metrics = async (): Promise<readonly MetricFamily[]> => (await (await starting)?.metrics()) ?? [];

  const onCall = async (call: Call): Promise<void> => {
    const { id } = call;
    const reply = <Name extends CallName>(_: Name, result: WorkerCalls[Name]['result']) => send({ id, result });
    switch (call.name) {
      case 'start':
        starting = startGateway(call.given, log, { isWorker: true });
        try {
          const { address } = await starting;
          isListening = true;
          await reply('start', address);
        } catch (error) {
          await send({ id, error: describeError(error) });
          exit(1);
        }
        break;
      case 'reload':
        await reply('reload', await (await (starting as Promise<Gateway>)).reload(call.given));
        break;
      case 'metrics':
        await reply('metrics', await metrics());
        break;
      case 'figures': {
        const { name, args } = call.given;
        await reply('figures', (await callFigure((await parts()).figures, name, args)) as never);
        break;
      }
      case 'ready':
        (await parts()).setReady(call.given);
        await reply('ready', undefined);
        break;
      case 'events':
        outbox ??= new EventOutbox((await parts()).traffic, send);
        await reply('events', outbox.turn(call.given));
        break;
      case 'stop':
        await reply('stop', { cutOff: await stop(), metrics: await metrics() });
        exit(0);
    }
  };
  process.on('message', (call: Call) => {
    onCall(call).catch((error: unknown) => send({ id: call.id, error: describeError(error) }));
  });
  void send(READY);
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
