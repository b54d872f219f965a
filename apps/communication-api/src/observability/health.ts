/** The state that a process reports. A `degraded` process is ready: it works without Redis. */
export type HealthStatus = 'starting' | 'ok' | 'degraded' | 'unready' | 'draining';

/** The answer to a check, and its findings. */
export interface HealthAnswer {
  readonly status: HealthStatus;
  readonly database?: 'ok' | 'away';
  readonly schema?: 'current' | 'behind';
  readonly redis?: 'ok' | 'away';
}

export interface HealthParts {
  /** Asks the database whether every migration of this version ran. Rejects if the database is away. */
  hasCurrentSchema(): Promise<boolean>;
  /** Whether Redis answers; undefined: REDIS_URL is not set. */
  redisAnswers(): boolean | undefined;
}

/** A busy database may take some time. A balancer that waits longer than this takes a silent process for dead. */
const CHECK_MS = 2_000;

/** The answers of a process to health checks. */
export class Health {
  #phase: 'starting' | 'running' | 'draining' = 'starting';
  #checking: Promise<HealthAnswer> | undefined;

  constructor(
    private readonly parts: HealthParts,
    private readonly checkMs = CHECK_MS,
  ) {}

  /** From now on the process works. */
  started(): void {
    if (this.#phase === 'starting') this.#phase = 'running';
  }

  /** From now on the process ends: it only finishes the work that it began. */
  drain(): void {
    this.#phase = 'draining';
  }

  get isDraining(): boolean {
    return this.#phase === 'draining';
  }

  /** Whether the process lives, and does not end. It asks nothing. */
  live(): HealthAnswer {
    return { status: this.isDraining ? 'draining' : 'ok' };
  }

  /** Whether the process can do its work now. Checks at the same time ask the database once. */
  async ready(): Promise<HealthAnswer> {
    if (this.#phase !== 'running') return { status: this.#phase };
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    const found = await this.#checking;
    // The process may have begun to end meanwhile.
    return this.isDraining ? this.live() : found;
  }

  async #check(): Promise<HealthAnswer> {
    const hasCurrentSchema = await this.#askDatabase();
    const answers = this.parts.redisAnswers();
    const redis = answers === undefined ? {} : ({ redis: answers ? 'ok' : 'away' } as const);
    if (hasCurrentSchema === undefined) return { status: 'unready', database: 'away', ...redis };
    const schema = hasCurrentSchema ? 'current' : 'behind';
    const status = !hasCurrentSchema ? 'unready' : answers === false ? 'degraded' : 'ok';
    return { status, database: 'ok', schema, ...redis };
  }

  async #askDatabase(): Promise<boolean | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, this.checkMs, undefined);
    });
    try {
      return await Promise.race([this.parts.hasCurrentSchema(), late]);
    } catch {
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The HTTP status of an answer. */
export const statusOf = ({ status }: HealthAnswer): 200 | 503 => (status === 'ok' || status === 'degraded' ? 200 : 503);
