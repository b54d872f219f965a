import { isHeadgateError, OptionError, ResultUnavailableError, StoreUnavailableError } from '../../base/errors.ts';
import { monotonicClock } from '../../core/clock.ts';
import type { ClaimId } from '../../core/ports.ts';
import { CommandBatcher, type PendingCommand } from '../shared/command-batcher.ts';
import { LargeValues } from '../shared/large-values.ts';
import { ServerTime } from '../shared/server-time.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { type ClaimNames, namesOf } from './claim-names.ts';
import type { FilledClaimOptions } from './claim-options.ts';
import { type Fields, fieldsOf, parse, type Timed, unexpected } from './claim-reply.ts';
import type { Row } from './database.ts';
import { isOfStatement, RowsFailedError, rowsErrorOf, setupErrorOf } from './errors.ts';
import type { Server } from './server.ts';

/** Longer values travel by themselves. */
export const MAX_SMALL_BYTES = 8_192;
/** For replies with a value of any length. */
const ANY_LENGTH = String(Number.MAX_SAFE_INTEGER);

const CLAIMS =
  'select headgate.claims_1($1::text, $2::text, $3::text::bigint, $4::text::bigint, $5::text::bigint) as reply';

/** Of commands with notes: $6 has the statements of `rows`. */
const CLAIMS_WITH_ROWS =
  'select headgate.claims_2($1::text, $2::text, $3::text::bigint, $4::text::bigint, $5::text::bigint, $6::text) as reply';

/** Reads the reply to one kind of command. */
type Read<Reply> = (fields: Fields) => Timed<Reply>;

/** The fields of a command, as `claim_1` reads them. */
export type Command = {
  readonly command: string;
  /** A JSON text. */
  readonly note?: string | undefined;
} & Readonly<Record<string, string | number | boolean | undefined>>;

/** A command that is not sent yet. */
interface Pending extends PendingCommand {
  readonly id: string;
  /** The command as JSON. */
  readonly text: string;
  /** Whether it writes rows of the user. */
  readonly hasNote: boolean;
  /** Called with its part of the answer. Throws if that is not valid. */
  settle(fields: Fields): void;
  reject(error: unknown): void;
}

/** The parts of {@link ClaimCalls}. */
export interface ClaimCallsOptions extends FilledClaimOptions {
  readonly server: Server;
  /** Of large values. */
  readonly largeServer: Server;
}

/**
 * Sends commands about claims to PostgreSQL. The commands of one turn of the event loop are sent together, and commands
 * with a large value by themselves.
 */
export class ClaimCalls {
  readonly #options: ClaimCallsOptions;
  readonly #serverTime = new ServerTime();
  readonly #batcher: CommandBatcher<Pending>;
  readonly large: LargeValues;
  /** Commands that were sent. */
  count = 0;
  /** Commands that were given up at the deadline. */
  timeouts = 0;

  constructor(options: ClaimCallsOptions) {
    this.#options = options;
    const { largeServer, deadlineMs, maxLargeBytesPerScope: maxBytesPerScope } = options;
    const onError = (error: unknown): void => largeServer.outages.report(error);
    this.large = new LargeValues({ breaker: largeServer.breaker, deadlineMs, maxBytesPerScope, onError });
    this.#batcher = new CommandBatcher({ oneCommandPerCall: false, send: (pending) => void this.#send(pending) });
  }

  /**
   * @param again the command that asks again for a large value that the reply left out
   * @throws PostgresSetupError, RowsFailedError, StoreTimeoutError, StoreUnavailableError, ResultUnavailableError
   */
  async run<Reply>(id: ClaimId, command: Command, read: Read<Reply>, again = command): Promise<Reply> {
    const { note } = command;
    if (note !== undefined && note.length >= MAX_SMALL_BYTES)
      return this.runLarge(id, command, null, read, Buffer.byteLength(note));
    this.count++;
    const names = namesOf(id);
    const text = this.#textOf(names, command);
    const hasNote = note !== undefined;
    const { reply, omittedBytes } = await traceCall(
      'claims',
      command.command,
      this.#options.server.breaker,
      () =>
        new Promise<Timed<Reply>>((resolve, reject) => {
          const settle = (fields: Fields): void => resolve(this.#noted(read(fields)));
          this.#batcher.add({ id: names.id, text, hasNote, characters: text.length, settle, reject });
        }),
    );
    if (omittedBytes === undefined) return reply;
    // A repeated command does no harm. If the record expired meanwhile, the command acts as for a key without a record.
    try {
      return await this.runLarge(id, again, null, read, omittedBytes);
    } catch (error) {
      throw setupErrorOf(error) ?? new ResultUnavailableError(error);
    }
  }

  /**
   * Sends a command by itself that carries a large value or a large note, or whose reply carries one.
   * @param value packed
   * @param bytes length of the value and of the note
   */
  async runLarge<Reply>(
    id: ClaimId,
    command: Command,
    value: string | null,
    read: Read<Reply>,
    bytes: number,
  ): Promise<Reply> {
    const { largeServer } = this.#options;
    this.count++;
    const text = `[${this.#textOf(namesOf(id), command)}]`;
    try {
      return await traceCall('large_values', command.command, largeServer.breaker, () =>
        this.large.run(id.scope, bytes, async () => {
          const [fields] = repliesOf(
            await this.#query(largeServer, text, value, ANY_LENGTH, command.note !== undefined),
            1,
          );
          return this.#noted(read(fields as Fields)).reply;
        }),
      );
    } catch (error) {
      throw setupErrorOf(error) ?? rowsErrorOf(error) ?? error;
    }
  }

  /**
   * Sends commands in one statement. If it fails, all of them fail, because each of them may have been executed. But if
   * PostgreSQL refused it and it has rows, they are sent again in halves: only the command with the wrong rows fails.
   */
  async #send(pending: readonly Pending[]): Promise<void> {
    // In one order everywhere, so that no two statements wait for each other. The commands of a key keep theirs.
    const sorted = [...pending].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
    const { server } = this.#options;
    const text = `[${sorted.map((each) => each.text).join(',')}]`;
    const hasNotes = sorted.some(({ hasNote }) => hasNote);
    try {
      server.schema.checkOpen();
      await server.breaker.run(async () => {
        const replies = repliesOf(
          await this.#query(server, text, null, String(MAX_SMALL_BYTES), hasNotes),
          sorted.length,
        );
        for (const [i, command] of sorted.entries()) command.settle(replies[i] as Fields);
      });
    } catch (error) {
      const cause = error instanceof StoreUnavailableError ? error.cause : error;
      if (hasNotes && sorted.length > 1 && (cause instanceof RowsFailedError || isOfStatement(cause))) {
        const half = Math.ceil(sorted.length / 2);
        void this.#send(sorted.slice(0, half));
        void this.#send(sorted.slice(half));
        return;
      }
      if (isHeadgateError(error, 'store_timeout')) this.timeouts += pending.length;
      for (const { reject } of pending) reject(setupErrorOf(error) ?? rowsErrorOf(error) ?? error);
    }
  }

  #query(
    server: Server,
    commands: string,
    value: string | null,
    maxBytes: string,
    hasNotes: boolean,
  ): Promise<readonly Row[]> {
    const { schema, deadlineMs } = server;
    const until = monotonicClock.now() + deadlineMs;
    const values = [commands, value, maxBytes, String(deadlineMs), server.now()];
    if (!hasNotes) return schema.query(CLAIMS, values, until);
    return schema.query(CLAIMS_WITH_ROWS, [...values, JSON.stringify(this.#options.rows)], until);
  }

  /**
   * The command as JSON. Its note is JSON already.
   * @throws OptionError for a note without rows
   */
  #textOf(names: ClaimNames, command: Command): string {
    const { note, command: step } = command;
    if (note === undefined) return JSON.stringify({ ...names, ...command });
    if (!Object.hasOwn(this.#options.rows ?? {}, step))
      throw new OptionError('note', undefined, `must not be given without rows.${step}`, 'a note');
    return `${JSON.stringify({ ...names, ...command, note: undefined }).slice(0, -1)},"note":${note}}`;
  }

  #noted<Reply>(timed: Timed<Reply>): Timed<Reply> {
    this.#serverTime.report('', timed.now, monotonicClock.now());
    return timed;
  }

  /** When this process gives up a command that it sends now, on the server's clock; undefined if unknown. */
  deadline(): number | undefined {
    const { clock, deadlineMs } = this.#options;
    if (clock !== undefined) return clock.now() + deadlineMs;
    return this.#serverTime.deadline('', monotonicClock.now(), deadlineMs);
  }
}

function repliesOf(rows: readonly Row[], count: number): Fields[] {
  const replies = parse(rows[0]?.reply);
  if (!Array.isArray(replies) || replies.length !== count) throw unexpected();
  return replies.map(fieldsOf);
}
