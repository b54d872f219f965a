import type { Logger } from 'pino';
import { answersRequests } from '../domain/process-role.ts';
import { Periodic } from '../jobs/periodic.ts';
import type { Instances } from './instances.ts';

const EVERY_MS = 3_000;

/** Without Redis, each process counts for itself. This watches whether several processes do so, and warns of it. */
export class SeparateCounters {
  #processes = 1;
  readonly #periodic = new Periodic({ firstMs: EVERY_MS, everyMs: EVERY_MS }, () => this.look());

  constructor(
    private readonly instances: Pick<Instances, 'alive'>,
    private readonly log: Pick<Logger, 'info' | 'warn'>,
  ) {}

  /** Processes that answered requests when this process last looked. */
  get processes(): number {
    return this.#processes;
  }

  async start(): Promise<void> {
    this.log.warn(
      'REDIS_URL is not set: each process counts limits, idempotency keys and sign-in attempts for itself. Set it before you start a second process',
    );
    await this.look();
    this.#periodic.start();
  }

  close(): Promise<void> {
    return this.#periodic.close();
  }

  /** Counts the processes. It logs a change, and nothing while all stays as it is. */
  async look(): Promise<void> {
    let processes: number;
    try {
      processes = (await this.instances.alive()).filter(({ role }) => answersRequests(role)).length;
    } catch {
      // The database is away. The sign of life of this process already reported it.
      return;
    }
    if (processes === this.#processes) return;
    const hadOthers = this.#processes > 1;
    this.#processes = processes;
    if (processes > 1)
      this.log.warn(
        { processes },
        'several processes answer requests without REDIS_URL: each grants every account its whole allowance. Set it, or stop the others',
      );
    else if (hadOthers) this.log.info('no other process answers requests without REDIS_URL any more');
  }
}
