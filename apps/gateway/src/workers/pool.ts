import type { CountedWorkers } from '../admin/combined-figures.ts';
import type { ReloadReport } from '../config/config-change.ts';
import type { Config } from '../config/schema.ts';
import type { Log } from '../operations/log.ts';
import type { MetricFamily } from '../operations/metrics.ts';
import type { Address } from '../server/listen.ts';
import type { WorkerCalls, WorkerEvents } from './messages.ts';
import { RestartPause } from './restart-pause.ts';
import { EndedWorkers } from './summed-metrics.ts';
import { type AskName, forkWorker, type WorkerExit, type WorkerProcess } from './worker-process.ts';

/** A draining worker is killed if it still runs this long after `shutdownDelayMs` and `drainMs`. */
const END_MS = 7_000;

/** The answers of the workers, and which workers they are from. */
export interface PoolAnswer<Name extends AskName> {
  readonly each: readonly WorkerCalls[Name]['result'][];
  readonly workers: CountedWorkers;
}

/** The workers of the primary. One that ends unexpectedly is replaced. */
export class WorkerPool {
  readonly #log: Log;
  readonly #workers = new Set<WorkerProcess>();
  readonly #listening = new Set<WorkerProcess>();
  readonly #ended = new EndedWorkers();
  readonly #pause = new RestartPause();
  readonly #restarts = new Set<NodeJS.Timeout>();
  /** They could not reload, and drain. New workers run in their places. */
  readonly #retired = new Set<WorkerProcess>();
  /** New workers start with it. */
  #config: Config;
  /** What every worker obeys, also one that starts later. */
  readonly #obeyed = new Map<'ready' | 'events', boolean>();
  readonly #onEvents: (events: WorkerEvents) => void;
  #replaces = false;
  #unexpectedEnds = 0;

  /** @param onEvents gets the events of every worker, while they are asked for them */
  constructor(config: Config, log: Log, onEvents: (events: WorkerEvents) => void) {
    this.#config = config;
    this.#log = log;
    this.#onEvents = onEvents;
  }

  /** Workers that listen. */
  get listening(): number {
    return this.#listening.size;
  }

  /** Workers that ended unexpectedly. */
  get unexpectedEnds(): number {
    return this.#unexpectedEnds;
  }

  /**
   * Starts the first workers.
   * @throws the error of the first worker that could not start, after all workers end
   */
  async start(count: number): Promise<Address> {
    const workers = Array.from({ length: count }, () => this.#fork());
    try {
      const [address] = await Promise.all(workers.map(({ started }) => started));
      this.#replaces = true;
      return address as Address;
    } catch (error) {
      this.kill();
      await Promise.all(workers.map(({ exited }) => exited));
      throw error;
    }
  }

  /** All workers get this config. A worker that cannot apply it is replaced. Returns the reports of the others. */
  async reload(config: Config): Promise<readonly ReloadReport[]> {
    this.#config = config;
    const reports = await Promise.all([...this.#workers].map((worker) => this.#reload(worker, config)));
    return reports.filter((report) => report !== undefined);
  }

  /** Asks every worker that listens. */
  async ask<Name extends AskName>(name: Name, given: WorkerCalls[Name]['given']): Promise<PoolAnswer<Name>> {
    const workers = [...this.#listening];
    const answers = await Promise.all(workers.map((worker) => worker.ask(name, given)));
    const missing = workers.filter((_, i) => answers[i] === undefined).map(({ id }) => id);
    return {
      each: answers.flatMap((answer) => (answer === undefined ? [] : [answer.result])),
      workers: { counted: workers.length - missing.length, of: workers.length, missing },
    };
  }

  /** As `ask`. Workers that start later obey as well. */
  obey<Name extends 'ready' | 'events'>(name: Name, value: boolean): Promise<PoolAnswer<Name>> {
    this.#obeyed.set(name, value);
    return this.ask(name, value);
  }

  /** The metrics of each worker, and of the ended workers. */
  async metrics(): Promise<readonly (readonly MetricFamily[])[]> {
    await Promise.all([...this.#workers].map((worker) => worker.refreshMetrics()));
    // Read in one turn: a worker that ends meanwhile is either among the workers or among the ended ones.
    return [...[...this.#workers].map(({ lastMetrics }) => lastMetrics), this.#ended.families];
  }

  /**
   * Drains all workers, and kills those that do not end in time. Resolves when the last worker ends, to the number of
   * requests that were cut off.
   */
  async stop(): Promise<number> {
    this.#replaces = false;
    for (const timer of this.#restarts) clearTimeout(timer);
    const cutOffs = await Promise.all([...this.#workers].map((worker) => this.#drain(worker)));
    return cutOffs.reduce((total, cutOff) => total + cutOff, 0);
  }

  /** Ends all workers at once. */
  kill(): void {
    for (const worker of this.#workers) worker.kill();
  }

  #drain(worker: WorkerProcess): Promise<number> {
    const { shutdownDelayMs, drainMs } = this.#config;
    return worker.stop(shutdownDelayMs + drainMs + END_MS);
  }

  #fork(): WorkerProcess {
    const worker = forkWorker(this.#config, this.#onEvents);
    this.#workers.add(worker);
    worker.started.then(
      () => {
        this.#listening.add(worker);
        for (const [name, value] of this.#obeyed) void this.#catchUp(worker, name, value);
        this.#log.logger.info({ worker: worker.id, pid: worker.pid }, 'worker listening');
      },
      () => {},
    );
    void worker.exited.then((exit) => {
      this.#workers.delete(worker);
      this.#listening.delete(worker);
      this.#ended.add(worker.lastMetrics);
      if (this.#replaces && !this.#retired.delete(worker)) void this.#replace(worker, exit);
    });
    return worker;
  }

  async #reload(worker: WorkerProcess, config: Config): Promise<ReloadReport | undefined> {
    try {
      return await worker.reload(config);
    } catch (err) {
      // A worker that ended, or could not start, is replaced anyway.
      if (!this.#replaces || !this.#listening.has(worker) || this.#retired.has(worker)) return undefined;
      this.#log.logger.error({ worker: worker.id, err }, 'worker could not reload: another takes its place');
      this.#retired.add(worker);
      this.#fork();
      void this.#drain(worker);
      return undefined;
    }
  }

  async #catchUp(worker: WorkerProcess, name: 'ready' | 'events', value: boolean): Promise<void> {
    const answer = await worker.ask(name, value);
    if (Array.isArray(answer?.result)) this.#onEvents({ events: answer.result, dropped: 0 });
  }

  async #replace({ id, pid, started }: WorkerProcess, { code, signal }: WorkerExit): Promise<void> {
    this.#unexpectedEnds += 1;
    const pauseMs = this.#pause.next(performance.now());
    const timer = setTimeout(() => {
      this.#restarts.delete(timer);
      this.#fork();
    }, pauseMs);
    this.#restarts.add(timer);
    const line = { worker: id, pid, code, signal, pauseMs };
    await started.then(
      () => this.#log.logger.error(line, 'worker ended: another takes its place'),
      (err: unknown) => this.#log.logger.error({ ...line, err }, 'worker could not start: another takes its place'),
    );
  }
}
