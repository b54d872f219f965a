import cluster, { type Worker } from 'node:cluster';
import type { ReloadReport } from '../config/config-change.ts';
import type { Config } from '../config/schema.ts';
import type { MetricFamily } from '../operations/metrics.ts';
import { type Address, LISTEN_PLACES, ListenError } from '../server/listen.ts';
import type { Call, CallError, CallName, CallReply, Stopped, WorkerCalls, WorkerEvents } from './messages.ts';

/** How a process ended. Both are null if the system could not create it. */
export interface WorkerExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** One worker, as the primary sees it. */
export interface WorkerProcess {
  readonly id: number;
  readonly pid: number | undefined;
  /**
   * Resolves when the worker listens.
   * @throws ListenError, or another Error with the reason why the worker cannot serve
   */
  readonly started: Promise<Address>;
  readonly exited: Promise<WorkerExit>;
  /**
   * The worker judges requests by this config from now on.
   * @throws Error if it cannot, or does not reply in time
   */
  reload(config: Config): Promise<ReloadReport>;
  /** The metrics of the last answered {@link WorkerProcess.refreshMetrics}. */
  readonly lastMetrics: readonly MetricFamily[];
  /** Never rejects. */
  refreshMetrics(): Promise<void>;
  /**
   * The result of a call; undefined if the worker ends, fails, or does not reply in time. A worker that still owes an
   * earlier reply is not asked again, so that no calls pile up.
   */
  ask<Name extends AskName>(
    name: Name,
    given: WorkerCalls[Name]['given'],
  ): Promise<{ readonly result: WorkerCalls[Name]['result'] } | undefined>;
  /** Drains the worker, and kills it if it still runs after `withinMs`. Resolves to how many requests were cut off. */
  stop(withinMs: number): Promise<number>;
  kill(): void;
}

/** The calls of which an answer of the Admin API needs the results. */
export type AskName = 'figures' | 'ready' | 'events';

/** Longest wait for the figures of a worker. */
const ASK_MS = 2_000;
/** If a worker's event loop is blocked, a scrape must still end within Prometheus's usual timeout of 10 s. */
const METRICS_MS = 2_000;

/** A worker that does not reply for this long is taken for dead. */
const RELOAD_MS = 10_000;
/** Longest wait, after the end of a process, for the messages that it sent. */
const RECEIVE_MS = 500;

/** Starts a worker with this config, which may send events. */
export function forkWorker(config: Config, onEvents: (events: WorkerEvents) => void): WorkerProcess {
  const worker = cluster.fork();
  closeUnaccepted(worker);
  const exited = exitOf(worker);
  const call = callerOf(worker, exited, onEvents);
  const started = call('start', config);
  const owed = new Set<Promise<unknown>>();
  // The caller awaits it if it needs to know. The exit is noticed in any case.
  started.catch(() => {});
  let lastMetrics: readonly MetricFamily[] = [];
  const kill = (): void => void worker.process.kill('SIGKILL');
  return {
    id: worker.id,
    pid: worker.process.pid,
    started,
    exited,
    reload(config) {
      const late = elapsed(RELOAD_MS).then(() => {
        throw new Error(`the worker did not reload within ${RELOAD_MS} ms`);
      });
      return Promise.race([call('reload', config), late]);
    },
    get lastMetrics() {
      return lastMetrics;
    },
    async refreshMetrics() {
      const refresh = async (): Promise<void> => {
        lastMetrics = await call('metrics', undefined);
      };
      await Promise.race([refresh().catch(() => {}), elapsed(METRICS_MS)]);
    },
    async ask(name, given) {
      // What a worker must obey is sent in any case. It obeys later.
      if (name === 'figures' && owed.size > 0) return undefined;
      const reply = call(name, given).then(
        (result) => ({ result }),
        () => undefined,
      );
      const result = await Promise.race([reply, elapsed(ASK_MS).then(() => LATE)]);
      if (result !== LATE) return result as Awaited<typeof reply>;
      owed.add(reply);
      void reply.then(() => owed.delete(reply));
      return undefined;
    },
    async stop(withinMs) {
      const timer = setTimeout(kill, withinMs);
      const stopped = await call('stop', undefined).catch((): Stopped => ({ cutOff: 0, metrics: lastMetrics }));
      lastMetrics = stopped.metrics;
      await exited;
      clearTimeout(timer);
      return stopped.cutOff;
    },
    kill,
  };
}

const LATE = Symbol('late');

/** Resolves when the process ended and its messages are received. */
function exitOf(worker: Worker): Promise<WorkerExit> {
  const received = new Promise<void>((resolve) => worker.once('disconnect', resolve));
  return new Promise((resolve) => {
    worker.once('exit', (code: number | null, signal: string | null) => {
      // Node does not notice the end of the channel if a connection was on its way to the worker.
      void Promise.race([received, elapsed(RECEIVE_MS)]).then(() => resolve({ code, signal }));
    });
    // A process that could not be created never exits.
    worker.on('error', () => worker.process.pid === undefined && resolve({ code: null, signal: null }));
  });
}

/**
 * Closes the connection that the worker did not accept before it ended. Node keeps it open, so its client would wait
 * for ever.
 */
function closeUnaccepted(worker: Worker): void {
  const { process } = worker;
  const send = process.send.bind(process) as (message: unknown, handle?: unknown, ...rest: unknown[]) => boolean;
  // A worker is sent one connection at a time. To close one twice does no harm.
  let last: { close(): void } | undefined;
  process.send = (message: unknown, handle?: unknown, ...rest: unknown[]) => {
    if (handle instanceof Object && 'close' in handle) last = handle as { close(): void };
    return send(message, handle, ...rest);
  };
  worker.once('exit', () => last?.close());
}

type Caller = <Name extends CallName>(
  name: Name,
  given: WorkerCalls[Name]['given'],
) => Promise<WorkerCalls[Name]['result']>;

/** A call rejects with the error of the worker, or if it ends before it replies. */
function callerOf(worker: Worker, exited: Promise<WorkerExit>, onEvents: (events: WorkerEvents) => void): Caller {
  const calls = new Map<number, { resolve(result: unknown): void; reject(error: CallError | Error): void }>();
  // The first message is not a reply, see READY.
  const ready = new Promise<void>((resolve) => worker.once('message', () => resolve()));
  let lastId = 0;
  let end: Error | undefined;
  worker.on('message', (message: CallReply | WorkerEvents) => {
    if ('events' in message) {
      onEvents(message);
      return;
    }
    const { id, result, error } = message;
    if (error === undefined) calls.get(id)?.resolve(result);
    else calls.get(id)?.reject(error);
    calls.delete(id);
  });
  void exited.then(({ code, signal }) => {
    end = new Error(`the worker process ended with ${signal ?? code}`);
    for (const { reject } of calls.values()) reject(end);
    calls.clear();
  });
  return (name, given) =>
    new Promise((resolve, reject) => {
      if (end !== undefined) {
        reject(end);
        return;
      }
      lastId += 1;
      calls.set(lastId, {
        resolve: resolve as (result: unknown) => void,
        reject: (error) => reject(error instanceof Error ? error : errorOf(error, given as Config)),
      });
      const call = { id: lastId, name, given } as Call;
      // If it cannot be sent, the worker is about to end, and that rejects the call.
      void ready.then(() => worker.send(call, () => {}));
    });
}

function errorOf({ message, listenCode }: CallError, config: Config | undefined): Error {
  // The worker's message contains its stack.
  if (listenCode === undefined || config === undefined) return Object.assign(new Error(message), { stack: message });
  return new ListenError(config.listen, LISTEN_PLACES, Object.assign(new Error(message), { code: listenCode }));
}

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
