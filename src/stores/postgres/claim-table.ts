import type { ClaimId, ClaimPage, ClaimView } from '../../core/ports.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { namesOf, scopePart } from './claim-names.ts';
import {
  type BegunClaim,
  type Fields,
  fieldsOf,
  integer,
  parse,
  readInspect,
  readListed,
  unexpected,
} from './claim-reply.ts';
import { ScopeCounts } from './scope-counts.ts';
import type { Server } from './server.ts';

/** A page of a list, and a count, take longer than a command. */
const SLOW_DEADLINES = 10;
/** New claims between two sweeps. */
const SWEEP_AFTER = 64;
/** Records that one sweep deletes at most: more than are added between two sweeps, or the table would grow. */
const SWEPT = 128;

const INSPECT = 'select headgate.inspect_claim_1($1::text, $2::text::bigint, $3::text::bigint) as reply';
const LIST = 'select headgate.list_claims_1($1::text, $2::text::bigint, $3::text::bigint) as reply';
const COUNT = 'select headgate.count_claims_1($1::text, $2::text::bigint, $3::text::bigint) as reply';
const SWEEP = 'select headgate.sweep_claims_1($1::text::bigint, $2::text::bigint) as swept';

/** What a claim store does with its table beside the commands. */
export class ClaimTable {
  readonly #server: Server;
  readonly #counts: ScopeCounts;
  readonly #listeners = new Set<(id: ClaimId) => void>();
  /** The first new claim of a process sweeps: processes can be short-lived. */
  #sinceSweep = SWEEP_AFTER;
  /** Claims of unknown outcome that made room. */
  forgotten = 0;

  constructor(server: Server, maxClaimsPerScope: number) {
    this.#server = server;
    this.#counts = new ScopeCounts(maxClaimsPerScope, async (scope) => {
      const { count, first } = await this.#ask(COUNT, [scopePart(scope), String(maxClaimsPerScope)]);
      return { claims: integer(count), firstEndMs: first == null ? undefined : integer(first) };
    });
  }

  isFull(scope: string): boolean {
    return this.#counts.isFull(scope);
  }

  /** About how long until a claim of a full scope expires. */
  retryAfterMs(scope: string): number {
    return this.#counts.retryAfterMs(scope);
  }

  onForgotten(listener: (id: ClaimId) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Counts what a begin changed, and sweeps now and then. */
  begun({ scope }: ClaimId, { isNew, forgotten }: Omit<BegunClaim, 'reply'>): void {
    if (forgotten !== undefined) {
      this.forgotten++;
      for (const listener of this.#listeners) listener({ scope, key: forgotten });
    }
    if (!isNew) return;
    this.#counts.added(scope);
    if (++this.#sinceSweep < SWEEP_AFTER) return;
    this.#sinceSweep = 0;
    // The next sweep deletes what this one leaves.
    this.#server.query(SWEEP, [String(SWEPT), this.#server.now()], this.#slowMs).catch(() => {});
  }

  async inspect(id: ClaimId): Promise<ClaimView | undefined> {
    const answer = await this.#traced('inspect', INSPECT, [namesOf(id).id, String(Number.MAX_SAFE_INTEGER)]);
    return answer === null ? undefined : readInspect(fieldsOf(parse(answer))).reply;
  }

  /** In the order of the ids. A claim keeps its id, so it is on a page, whatever comes and goes meanwhile. */
  async list(after: string, count: number): Promise<ClaimPage> {
    const rows = parse(await this.#traced('list', LIST, [after, String(count)]));
    if (!Array.isArray(rows)) throw unexpected();
    const claims = rows.map(readListed).filter((claim) => claim !== undefined);
    return { claims, looked: rows.length, next: rows.length < count ? undefined : String(rows.at(-1).id) };
  }

  async #ask(text: string, values: readonly string[]): Promise<Fields> {
    const [row] = await this.#server.query(text, [...values, this.#server.now()], this.#slowMs);
    return fieldsOf(parse(row?.reply));
  }

  async #traced(operation: string, text: string, values: readonly string[]): Promise<unknown> {
    const server = this.#server;
    const [row] = await traceCall('claims', operation, server.breaker, () =>
      server.query(text, [...values, server.now()], this.#slowMs),
    );
    return row?.reply;
  }

  get #slowMs(): number {
    return SLOW_DEADLINES * this.#server.deadlineMs;
  }
}
