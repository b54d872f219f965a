import type { Config } from '../config/schema.ts';
import type { Log } from '../operations/log.ts';
import type { MetricFamily } from '../operations/metrics.ts';
import type { Address } from '../server/listen.ts';
import { RestartPause } from './restart-pause.ts';
import { EndedWorkers } from './summed-metrics.ts';
import { forkWorker, type WorkerExit, type WorkerProcess } from './worker-process.ts';

/** The workers of the primary. One that ends unexpectedly is replaced. */
export class WorkerPool {
  readonly #log: Log;
  readonly #config: Config;
  readonly #workers = new Set<WorkerProcess>();
  readonly #listening = new Set<WorkerProcess>();
  readonly #ended = new EndedWorkers();
  readonly #pause = new RestartPause();
  readonly #restarts = new Set<NodeJS.Timeout>();
  #replaces = false;
  #unexpectedEnds = 0;

  constructor(config: Config, log: Log) {
    this.#config = config;
    this.#log = log;
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
   * @throws what the first one that could not start has thrown, after all have ended
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

  /** The metrics of each worker, and of those that have ended. */
  async metrics(): Promise<readonly (readonly MetricFamily[])[]> {
    await Promise.all([...this.#workers].map((worker) => worker.refreshMetrics()));
    // Read in one turn: a worker that ends meanwhile is either among the workers or among those that have ended.
    return [...[...this.#workers].map(({ lastMetrics }) => lastMetrics), this.#ended.families];
  }

  /**
   * Drains all workers. Resolves to how many requests they cut off, when the last one has ended.
   * @param withinMs after this time the rest is killed
   */
  async stop(withinMs: number): Promise<number> {
    this.#replaces = false;
    for (const timer of this.#restarts) clearTimeout(timer);
    const cutOffs = await Promise.all([...this.#workers].map((worker) => worker.stop(withinMs)));
    return cutOffs.reduce((total, cutOff) => total + cutOff, 0);
  }

  /** Ends all workers at once. */
  kill(): void {
    for (const worker of this.#workers) worker.kill();
  }

  #fork(): WorkerProcess {
    const worker = forkWorker(this.#config);
    this.#workers.add(worker);
    worker.started.then(
      () => this.#listening.add(worker),
      () => {},
    );
    void worker.exited.then((exit) => {
      this.#workers.delete(worker);
      this.#listening.delete(worker);
      this.#ended.add(worker.lastMetrics);
      if (this.#replaces) void this.#replace(worker, exit);
    });
    return worker;
  }

  async #replace({ id, pid, started }: WorkerProcess, { code, signal }: WorkerExit): Promise<void> {
    this.#unexpectedEnds += 1;
    const pauseMs = this.#pause.next(performance.now());
    const timer = setTimeout(() => {
      this.#restarts.delete(timer);
      const next = this.#fork();
      next.started.then(
        () => this.#log.logger.info({ worker: next.id, pid: next.pid }, 'worker listening'),
        () => {},
      );
    }, pauseMs);
    this.#restarts.add(timer);
    const line = { worker: id, pid, code, signal, pauseMs };
    await started.then(
      () => this.#log.logger.error(line, 'worker ended: another takes its place'),
      (err: unknown) => this.#log.logger.error({ ...line, err }, 'worker could not start: another takes its place'),
    );
  }
}
