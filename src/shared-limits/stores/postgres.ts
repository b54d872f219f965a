import { checkOptions } from '../../base/options.ts';
import { inSlices } from '../../base/slices.ts';
import { type AdjustmentEntry, type AdjustmentState, type Head, MAX_RECENT, targetKey } from '../../core/adjustment.ts';
import type { PostgresClient } from '../../stores/postgres/client.ts';
import type { Row } from '../../stores/postgres/database.ts';
import { databaseIn, type Executor } from '../../stores/postgres/executor.ts';
import { COMMON_OPTIONS, type CommonOptions, fillCommonOptions } from '../../stores/postgres/options.ts';
import { Server } from '../../stores/postgres/server.ts';
import type { AdjustmentReply } from '../lineage.ts';
import type { AdjustmentInstance, AdjustmentStore } from '../ports.ts';
import { readHistoryRows, readInstanceRows, readReplyRows } from './postgres-rows.ts';

/** Options of {@link createPostgresAdjustments}. A reading of everything, or a change of many limits, may take longer. */
export type PostgresAdjustmentsOptions = CommonOptions;

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
 * @param client or an executor: a store for your open transaction, for the option `transaction` of a change
 * @throws OptionError
 */
export function createPostgresAdjustments(
  client: PostgresClient | Executor,
  options: PostgresAdjustmentsOptions = {},
): AdjustmentStore {
  checkOptions(options, COMMON_OPTIONS, 'options');
  const effect = 'the last known adjustments apply';
  const settings = { ...fillCommonOptions(options), store: 'adjustments', what: 'adjustments', effect } as const;
  return new PostgresAdjustments(new Server(client, settings, databaseIn(client)));
}

type Value = string | null;

class PostgresAdjustments implements AdjustmentStore {
  readonly durable = true;
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  read(known: Head | undefined, instance?: string): Promise<AdjustmentReply> {
    const name = instance === undefined ? null : JSON.stringify(instance);
    const values = [...headValues(known), String(MAX_RECENT), name, this.#server.now()];
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
    return this.#run('instances', INSTANCES, [this.#server.now()], 1, readInstanceRows);
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
      ...[JSON.stringify(rows), JSON.stringify(adjustments), String(share * this.#server.deadlineMs)],
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
    return this.#server.read(operation, text, values, share * this.#server.deadlineMs, read);
  }
}

const headValues = (head: Head | undefined): [version: Value, nonce: Value] =>
  head === undefined ? [null, null] : [String(head.version), JSON.stringify(head.nonce)];
