import type { Logger } from '../../base/logger.ts';
import { checkOptions } from '../../base/options.ts';
import { inSlices } from '../../base/slices.ts';
import { type AdjustmentEntry, type AdjustmentState, type Head, MAX_RECENT, targetKey } from '../../core/adjustment.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import type { PostgresClient, Row } from '../../stores/postgres/client.ts';
import { setupErrorOf } from '../../stores/postgres/errors.ts';
import { fillCommonOptions } from '../../stores/postgres/options.ts';
import { Schema } from '../../stores/postgres/schema.ts';
import { traceCall } from '../../stores/redis/store-tracer.ts';
import { CircuitBreaker } from '../../stores/shared/circuit-breaker.ts';
import { OutageLog } from '../../stores/shared/outage-log.ts';
import type { AdjustmentReply } from '../lineage.ts';
import type { AdjustmentInstance, AdjustmentStore } from '../ports.ts';
import { readHistoryRows, readInstanceRows, readReplyRows } from './postgres-rows.ts';

/** Options of {@link createPostgresAdjustments}. */
export interface PostgresAdjustmentsOptions {
  /**
   * The schema of the tables, as passed to `migrate`. It may be the schema of the other stores.
   * @default 'headgate'
   */
  readonly schema?: string | undefined;
  /**
   * Longest wait for an answer, in milliseconds, with the wait for a connection. For everything, and for a change of
   * many limits, it is longer.
   * @default 250
   */
  readonly deadlineMs?: number | undefined;
  /** Called with the error of every call that failed, for metrics. Its errors are logged. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * Is called when calls begin to fail, and when PostgreSQL answers again. False: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
  /** For tests: a clock that returns integer milliseconds, instead of the server's clock. */
  readonly clock?: Clock | undefined;
}

const OPTIONS = ['schema', 'deadlineMs', 'onError', 'logger', 'clock'];
/** Entries of the history that are stored. */
const MAX_HISTORY = 10_000;
/** Limits and entries that are written within the deadline. Twice as many get twice the time. */
const ROWS_PER_DEADLINE = 300;
/** How much longer than other calls one may take that returns everything. */
const WHOLE = 4;

const READ = `select kind, now, version, value from headgate.read_adjustments_1(
  $1::text::bigint, $2::text, $3::text::integer, $4::text, $5::text::bigint)`;
const WRITE = `select headgate.write_adjustments_1($1::text::bigint, $2::text, $3::text::bigint, $4::text,
  $5::text::boolean, $6::text::integer, $7::text::jsonb, $8::text::jsonb, $9::text::bigint) as stored`;
const HISTORY = 'select entry from headgate.adjustment_history_1($1::text::bigint, $2::text::integer)';
const INSTANCES = 'select name, age, version, nonce from headgate.adjustment_processes_1($1::text::bigint)';

/**
 * Creates a store of adjustments in PostgreSQL, which any number of processes can share. Each call is one statement. The
 * calls have a circuit breaker of their own, so they never open the breaker of decisions. The store never connects,
 * configures or closes the client. Call `migrate` before.
 * @throws OptionError
 */
export function createPostgresAdjustments(
  client: PostgresClient,
  options: PostgresAdjustmentsOptions = {},
): AdjustmentStore {
  checkOptions(options, OPTIONS, 'options');
  const { deadlineMs, onError, clock, log } = fillCommonOptions(options);
  const schema = new Schema(client, { schema: options.schema });
  const isReady = (): boolean => schema.database.isReady();
  const effect = 'the last known adjustments apply';
  // The server is well, and waiting does not help.
  const isHarmless = (error: unknown): boolean => setupErrorOf(error) !== undefined;
  const outages = new OutageLog({ what: 'adjustments', effect, isReady, log, onError, isHarmless });
  const breaker = new CircuitBreaker({
    deadlineMs,
    isReady,
    isHarmless,
    onError: outages.failed,
    onAnswer: outages.answered,
  });
  return new PostgresAdjustments({ schema, breaker, deadlineMs, clock });
}

interface Parts {
  readonly schema: Schema;
  readonly breaker: CircuitBreaker;
  readonly deadlineMs: number;
  readonly clock: Clock | undefined;
}

type Value = string | null;

class PostgresAdjustments implements AdjustmentStore {
  readonly durable = true;
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  read(known: Head | undefined, instance?: string): Promise<AdjustmentReply> {
    const name = instance === undefined ? null : JSON.stringify(instance);
    const values = [...headValues(known), String(MAX_RECENT), name, this.#now];
    return this.#run('read', READ, values, known === undefined ? WHOLE : 1, readReplyRows);
  }

  append(seen: Head | undefined, entry: AdjustmentEntry): Promise<boolean> {
    const { version, by, reason, at } = entry;
    const adjustments = entry.limits.map(({ target, to: windows, until }): [string, Value] => {
      const adjustment = { target, windows, version, by, reason, at, until };
      return [targetKey(target), windows === undefined ? null : JSON.stringify(adjustment)];
    });
    return this.#write('append', seen, entry, [entry], adjustments, false);
  }

  async restore(seen: Head | undefined, { head, adjustments, recent }: AdjustmentState): Promise<boolean> {
    const rows: [string, Value][] = [];
    await inSlices(adjustments, (each) => rows.push([targetKey(each.target), JSON.stringify(each)]));
    return this.#write('restore', seen, head, recent, rows, true);
  }

  async history(before: number | undefined, limit: number): Promise<readonly AdjustmentEntry[]> {
    const values = [before === undefined ? null : String(before), String(limit)];
    return this.#run('history', HISTORY, values, 1, readHistoryRows);
  }

  instances(): Promise<readonly AdjustmentInstance[]> {
    return this.#run('instances', INSTANCES, [this.#now], 1, readInstanceRows);
  }

  get #now(): Value {
    const { clock } = this.#parts;
    return clock === undefined ? null : String(clock.now());
  }

  #write(
    operation: string,
    seen: Head | undefined,
    head: Head,
    entries: readonly AdjustmentEntry[],
    adjustments: readonly (readonly [string, Value])[],
    isWhole: boolean,
  ): Promise<boolean> {
    // JSON texts in JSON: their escapes of NUL and lone surrogates must not be undone, since no text of PostgreSQL
    // can contain these.
    const rows = entries.map((entry) => [entry.version, JSON.stringify(entry.nonce), JSON.stringify(entry)]);
    const share = 1 + Math.floor((rows.length + adjustments.length) / ROWS_PER_DEADLINE);
    const values = [
      ...[...headValues(seen), ...headValues(head), String(isWhole), String(MAX_HISTORY)],
      ...[JSON.stringify(rows), JSON.stringify(adjustments), String(share * this.#parts.deadlineMs)],
    ];
    return this.#run(operation, WRITE, values, share, ([row]) => row?.stored === true);
  }

  /** @param share how many deadlines the call may take */
  #run<T>(
    operation: string,
    text: string,
    values: readonly Value[],
    share: number,
    read: (rows: readonly Row[]) => T | Promise<T>,
  ): Promise<T> {
    const { schema, breaker, deadlineMs } = this.#parts;
    const until = monotonicClock.now() + share * deadlineMs;
    const send = () => schema.query(text, values, until);
    return traceCall('adjustments', operation, breaker, async () => {
      try {
        return await breaker.run(send, share * deadlineMs, read);
      } catch (error) {
        throw setupErrorOf(error) ?? error;
      }
    });
  }
}

const headValues = (head: Head | undefined): [version: Value, nonce: Value] =>
  head === undefined ? [null, null] : [String(head.version), JSON.stringify(head.nonce)];
