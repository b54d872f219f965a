import { OptionError } from 'headgate';
import {
  type AbandonCommand,
  type AbandonReply,
  type BeginCommand,
  type BeginReply,
  type ClaimCommand,
  type ClaimId,
  type ClaimPage,
  type ClaimRecord,
  type ClaimStore,
  type ClaimView,
  type CompleteCommand,
  type CompleteReply,
  type HeldCommand,
  type HeldReply,
  type KeptResult,
  type ReadyOptions,
  ScopeFullError,
} from 'headgate/stores';
import type { Pool } from 'pg';
import { Database } from './database.ts';
import { digest, digestOf, fromText, lockOf, toText } from './names.ts';
import { type PostgresStoreOptions, positiveInteger } from './options.ts';
import { ScopeShares } from './scope-shares.ts';
import { ServerTime } from './server-time.ts';

/** Options of {@link createPostgresClaimStore}. */
export interface PostgresClaimStoreOptions extends PostgresStoreOptions {
  /**
   * Most claims of one scope (I13). A full scope gets `ScopeFullError` for its new keys. Each process counts again from
   * time to time, so a scope can exceed this a little.
   * @default 1_000_000
   */
  readonly maxClaimsPerScope?: number | undefined;
}

/** The fields that only some commands contain. */
type OwnFields = Omit<BeginCommand & HeldCommand & CompleteCommand & AbandonCommand, keyof ClaimCommand>;
type AnyCommand = ClaimCommand & { readonly [Field in keyof OwnFields]?: OwnFields[Field] | undefined };

/** A reply of `headgate.claim`. Fields that do not belong to its kind are left over from the record. */
interface Reply extends Result {
  readonly kind: string;
  readonly now: string;
  readonly generation: string;
  readonly inherited: boolean;
  readonly dispatched: boolean;
  readonly lease_until: string;
  readonly fingerprint: string;
  readonly is_new: boolean;
  /** The key of a claim that made room. */
  readonly forgotten: string | null;
}

interface Result {
  readonly status: string | null;
  readonly value: string | null;
}

/** A row of the table, with the time at which it was read. PostgreSQL's bigint is a string for node-postgres. */
interface Row extends Result {
  readonly now: string;
  readonly id: Buffer;
  readonly scope: string;
  readonly key: string;
  readonly state: ClaimRecord['state'];
  readonly fingerprint: string;
  readonly owner: string;
  readonly generation: string;
  readonly dispatched: boolean;
  readonly inherited: boolean;
  readonly lease_until: string;
  readonly expires_at: string;
  readonly value_bytes: string | null;
}

class PostgresClaimStore implements ClaimStore {
  readonly synchronous = false;
  readonly #database: Database;
  readonly #time: ServerTime;
  readonly #shares: ScopeShares;
  readonly #listeners = new Set<(id: ClaimId) => void>();

  constructor(database: Database, maxClaimsPerScope: number) {
    this.#database = database;
    this.#time = new ServerTime(database.clock);
    this.#shares = new ScopeShares(database, maxClaimsPerScope);
  }

  async begin(id: ClaimId, command: BeginCommand): Promise<BeginReply> {
    // A begin that marks the claim must not land after its sender gave up.
    const now = this.#time.now();
    const deadline = command.deadline ?? (now === undefined ? undefined : now + this.#database.deadlineMs);
    const dispatch = command.dispatch && deadline !== undefined;
    const scopeId = digest(id.scope);
    const reply = await this.#send('begin', id, { ...command, dispatch, deadline }, scopeId);
    const { generation, inherited, dispatched, forgotten } = reply;
    if (forgotten !== null) for (const tell of this.#listeners) tell({ scope: id.scope, key: read(forgotten) });
    switch (reply.kind) {
      case 'claimed':
        if (reply.is_new && reply.forgotten === null) this.#shares.added(scopeId);
        return { kind: 'claimed', generation: Number(generation), inherited, dispatched: dispatched && !inherited };
      case 'in_progress':
        return { kind: 'in_progress', remainingMs: Number(reply.lease_until) - Number(reply.now) };
      case 'mismatch':
        return { kind: 'mismatch', fingerprint: read(reply.fingerprint) };
      case 'settled':
        return { kind: 'settled', result: resultOf(reply) };
      case 'full':
        throw new ScopeFullError(this.#shares.max, this.#shares.retryAfterMs(scopeId));
      case 'orphan':
      case 'late':
        return { kind: reply.kind };
      default:
        throw unknownReply(reply);
    }
  }

  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    return this.#held('extend', id, command);
  }

  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    return this.#held('dispatch', id, command);
  }

  async complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply> {
    const reply = await this.#send('complete', id, command);
    if (reply.kind === 'superseded') return { kind: 'superseded', result: resultOf(reply) };
    if (reply.kind === 'ok' || reply.kind === 'lost') return { kind: reply.kind };
    throw unknownReply(reply);
  }

  async abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply> {
    const reply = await this.#send('abandon', id, command);
    if (reply.kind === 'settled') return { kind: 'settled', result: resultOf(reply) };
    if (reply.kind === 'released' || reply.kind === 'lost') return { kind: reply.kind };
    throw unknownReply(reply);
  }

  async inspect(id: ClaimId): Promise<ClaimView | undefined> {
    const [row] = await this.#database.query<Row>(
      `select now, c.* from headgate.claims as c, (select coalesce($2, headgate.clock()) as now) as clock
       where id = $1 and (expires_at > now or (state = 'in_progress' and dispatched))`,
      [idOf(id), this.#database.now()],
    );
    if (row === undefined) return undefined;
    const result = row.status === null ? undefined : resultOf(row);
    const { state, ...view } = viewOf(row);
    const { generation, dispatched, inherited, leaseMs, keptMs } = view;
    const [fingerprint, owner] = [read(row.fingerprint), read(row.owner)];
    return { state, fingerprint, owner, generation, dispatched, inherited, result, leaseMs, keptMs };
  }

  async list(cursor: string | undefined, count: number): Promise<ClaimPage> {
    if (cursor !== undefined && !/^[0-9a-f]{64}$/.test(cursor)) {
      throw new OptionError('cursor', cursor, 'must be `next` of a page');
    }
    // In the order of the ids. A claim keeps its id, so it is on a page, whatever comes and goes meanwhile.
    const rows = await this.#database.query<Row>(
      `select now, id, scope, key, state, generation, dispatched, inherited, lease_until, expires_at, status, value_bytes
       from headgate.claims, (select coalesce($3, headgate.clock()) as now) as clock
       where id > $1 order by id limit $2`,
      [Buffer.from(cursor ?? '', 'hex'), count, this.#database.now()],
    );
    const claims = rows
      .filter((row) => Number(row.expires_at) > Number(row.now) || (row.state === 'in_progress' && row.dispatched))
      .map((row) => ({
        ...viewOf(row),
        scope: read(row.scope),
        key: read(row.key),
        status: fromText(row.status),
        valueBytes: row.value_bytes === null ? undefined : Number(row.value_bytes),
      }));
    return { claims, looked: rows.length, next: rows.length < count ? undefined : rows.at(-1)?.id.toString('hex') };
  }

  onForgotten(listener: (id: ClaimId) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  ready(options?: ReadyOptions): Promise<void> {
    return this.#database.ready(options);
  }

  async #held(command: 'extend' | 'dispatch', id: ClaimId, fields: HeldCommand): Promise<HeldReply> {
    const reply = await this.#send(command, id, fields);
    if (reply.kind === 'settled') return { kind: 'settled', result: resultOf(reply) };
    if (reply.kind === 'ok' || reply.kind === 'lost') return { kind: reply.kind };
    throw unknownReply(reply);
  }

  async #send(command: string, id: ClaimId, fields: AnyCommand, scopeId = digest(id.scope)): Promise<Reply> {
    const claimId = idOf(id);
    const database = this.#database;
    const { result } = fields;
    const [reply] = await database.query<Reply>(
      `select reply as kind, now, is_new, forgotten, (record).generation, (record).inherited, (record).dispatched,
         (record).lease_until, (record).fingerprint, (record).status,
         case when reply in ('settled', 'superseded') then (record).value end as value
       from headgate.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
      [
        ...[command, claimId, lockOf(claimId), scopeId, toText(id.scope), toText(id.key), this.#shares.isFull(scopeId)],
        ...[toText(fields.token), toText(fields.fingerprint), fields.retentionMs, fields.leaseMs, fields.generation],
        ...[fields.onOrphan, fields.dispatch, fields.deadline, fields.releasedRetentionMs],
        ...[toText(result?.status), toText(result?.value), bytesOf(result)],
        ...[database.deadlineMs, database.now()],
      ],
    );
    if (reply === undefined) throw new Error('headgate.claim returned no row');
    this.#time.reported(Number(reply.now));
    return reply;
  }
}

const idOf = ({ scope, key }: ClaimId): Buffer => digestOf([digest(scope), digest(key)]);

const bytesOf = (result: KeptResult | undefined): number | null =>
  result?.value === undefined ? null : Buffer.byteLength(result.value);

/** A text of a column that is never null. */
const read = (text: string): string => JSON.parse(text);

const resultOf = ({ status, value }: Result): KeptResult => ({
  status: fromText(status) ?? '',
  value: fromText(value),
});

function viewOf(row: Row) {
  const now = Number(row.now);
  return {
    state: row.state,
    generation: Number(row.generation),
    dispatched: row.dispatched,
    inherited: row.inherited,
    leaseMs: row.state === 'in_progress' ? Math.max(0, Number(row.lease_until) - now) : 0,
    keptMs: Math.max(0, Number(row.expires_at) - now),
  };
}

const unknownReply = ({ kind }: Reply): Error =>
  new Error(`headgate.claim replied ${JSON.stringify(kind)}: call migrate`);

/**
 * Creates a claim store in PostgreSQL, which any number of processes can share. A command is one call of a function, and
 * one round trip. Call `migrate` once before. The store never connects, configures or closes the pool.
 * @throws OptionError
 */
export function createPostgresClaimStore(pool: Pool, options: PostgresClaimStoreOptions = {}): ClaimStore {
  const { maxClaimsPerScope = 1_000_000 } = options;
  return new PostgresClaimStore(new Database(pool, options), positiveInteger('maxClaimsPerScope', maxClaimsPerScope));
}
