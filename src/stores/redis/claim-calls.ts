import { isHeadgateError, ResultUnavailableError, StoreUnavailableError } from '../../base/errors.ts';
import { monotonicClock } from '../../core/clock.ts';
import type { ClaimId } from '../../core/ports.ts';
import type { CircuitBreaker } from '../shared/circuit-breaker.ts';
import { CommandBatcher, type PendingCommand } from '../shared/command-batcher.ts';
import type { LargeValues } from '../shared/large-values.ts';
import type { OutageLog } from '../shared/outage-log.ts';
import { ServerTime } from '../shared/server-time.ts';
import { traceCall } from '../shared/store-tracer.ts';
import type { FilledClaimOptions } from './claim-options.ts';
import type { Timed } from './claim-reply.ts';
import type { Commands, RedisClient } from './client.ts';
import { foreignRecord, isHarmless } from './errors.ts';
import { claimKey } from './keys.ts';
import { LargeValueOutage } from './large-value-outage.ts';
import claimSource from './lua/claim.lua';
import { createScript, scriptTime } from './script.ts';
import { serverOf } from './server-of.ts';

const script = /* @__PURE__ */ createScript(claimSource);

/** Longer values travel by themselves. */
export const MAX_SMALL_BYTES = 8_192;
/** For replies with a value of any length. */
const ANY_LENGTH = Number.MAX_SAFE_INTEGER;

/** A command that is not sent yet. */
interface Pending extends PendingCommand {
  readonly key: string;
  /** Its arguments for `claim.lua`, without the time. */
  readonly args: readonly string[];
  /** Called with the answer: the time, then the command's part of the reply. Throws if the answer is not valid. */
  settle(answer: unknown): void;
  reject(error: unknown): void;
}

/** Reads the reply to one kind of command. */
type Read<Reply> = (reply: unknown) => Timed<Reply>;

/** The parts of a store, and its options. */
export interface ClaimStoreParts extends FilledClaimOptions {
  readonly client: RedisClient;
  readonly commands: Commands;
  readonly breaker: CircuitBreaker;
  readonly outages: OutageLog;
  readonly largeCommands: Commands;
  readonly largeBreaker: CircuitBreaker;
  readonly large: LargeValues;
}

/**
 * Sends commands about claims to Redis. The commands of one turn of the event loop are sent together, and commands with
 * a large value by themselves.
 */
export class ClaimCalls {
  readonly #parts: ClaimStoreParts;
  readonly #serverTime = new ServerTime();
  readonly #batcher: CommandBatcher<Pending>;
  /** Of large values. */
  readonly outage: LargeValueOutage;
  /** Commands that were sent. */
  count = 0;
  /** Commands that were given up at the deadline. */
  timeouts = 0;
  /** Commands that were answered after their deadline. */
  late = 0;
  /** `begin` commands that did nothing, because they reached the server after the deadline that they carry. */
  lateBegins = 0;

  constructor(parts: ClaimStoreParts) {
    this.#parts = parts;
    this.outage = new LargeValueOutage(parts);
    this.#batcher = new CommandBatcher({
      oneCommandPerCall: parts.commands.isCluster,
      send: (pending) => void this.#send(pending),
    });
  }

  /** @param argsForValue the arguments with which the command asks again for a large value that its reply left out */
  async run<Reply>(id: ClaimId, args: readonly string[], read: Read<Reply>, argsForValue = args): Promise<Reply> {
    const key = this.#key(id);
    this.count++;
    const characters = args.reduce((sum, arg) => sum + arg.length, key.length);
    const { reply, omittedBytes } = await traceCall(
      'claims',
      args[0] as string,
      this.#parts.breaker,
      () =>
        new Promise<Timed<Reply>>((resolve, reject) =>
          this.#batcher.add({
            key,
            args,
            characters,
            reject,
            settle: (answer) => resolve(this.#read(key, read, answer)),
          }),
        ),
    );
    return omittedBytes === undefined ? reply : this.#askForValue(id, argsForValue, read, omittedBytes);
  }

  /**
   * Sends a command again whose reply left out a large value. A repeated command does no harm. If the record has
   * expired meanwhile, the command acts as for a key without a record.
   */
  async #askForValue<Reply>(id: ClaimId, args: readonly string[], read: Read<Reply>, bytes: number): Promise<Reply> {
    try {
      return await this.runLarge(id, args, read, bytes);
    } catch (error) {
      throw new ResultUnavailableError(error);
    }
  }

  /** Sends a command by itself that carries a large value, or whose reply does. */
  runLarge<Reply>(id: ClaimId, args: readonly string[], read: Read<Reply>, bytes: number): Promise<Reply> {
    const { large, largeCommands, largeBreaker } = this.#parts;
    const key = this.#key(id);
    this.count++;
    const send = async (): Promise<Reply> => {
      const answer = await script.run(
        largeCommands,
        [key],
        [scriptTime(this.#parts.clock), String(ANY_LENGTH), ...args],
      );
      return this.#read(key, read, answer).reply;
    };
    return traceCall('large_values', args[0] as string, largeBreaker, () => large.run(id.scope, bytes, send));
  }

  #read<Reply>(key: string, read: Read<Reply>, answer: unknown): Timed<Reply> {
    const timed = readAnswer(key, read, answer);
    this.#serverTime.report(serverOf(this.#parts.client, key), timed.now, monotonicClock.now());
    // Counted here, because the senders of most late commands do not wait any more.
    if ((timed.reply as { readonly kind?: unknown } | undefined)?.kind === 'late') this.lateBegins++;
    return timed;
  }

  /** Sends commands in one call. If the call fails, all of them fail, because each of them may have been executed. */
  async #send(pending: readonly Pending[]): Promise<void> {
    const { commands, breaker } = this.#parts;
    const keys = pending.map(({ key }) => key);
    const args = [scriptTime(this.#parts.clock), String(MAX_SMALL_BYTES)];
    for (const command of pending) args.push(...command.args);
    let givenUp = false;
    try {
      await breaker.run(async () => {
        const answer = await script.run(commands, keys, args);
        if (givenUp) this.late += pending.length;
        const [only] = pending;
        if (pending.length > 1) this.#settleAll(pending, answer);
        else if (Array.isArray(answer)) this.#settleOne(only as Pending, answer);
        else only?.settle(answer);
      });
    } catch (error) {
      if (!isHarmless((error as Error).cause)) this.outage.smallCallFailed();
      if (isHeadgateError(error, 'store_timeout')) {
        givenUp = true;
        this.timeouts += pending.length;
      }
      for (const { reject } of pending) reject(error);
    }
  }

  /** Gives each command its part of the answer. */
  #settleAll(pending: readonly Pending[], answer: unknown): void {
    if (!Array.isArray(answer) || answer.length !== pending.length + 1)
      throw new TypeError('unexpected reply of Redis');
    const [now, ...answers]: unknown[] = answer;
    for (const [i, command] of pending.entries()) {
      const own = answers[i];
      this.#settleOne(command, Array.isArray(own) ? [now, ...own] : own);
    }
  }

  /**
   * An answer that cannot be read, or a record that headgate did not write, fails alone: it does not count for the
   * circuit breaker, because the server answers the commands on other records.
   */
  #settleOne({ key, settle, reject }: Pending, answer: unknown): void {
    try {
      if (Array.isArray(answer) && answer.length === 1) throw foreignRecord(key);
      settle(answer);
    } catch (error) {
      this.#parts.outages.recordFailed(error);
      reject(new StoreUnavailableError(error));
    }
  }

  /** When this process gives up a command that it sends now, on the clock of the key's server; undefined if unknown. */
  deadline(id: ClaimId): number | undefined {
    const key = this.#key(id);
    const { client, deadlineMs, clock } = this.#parts;
    if (clock !== undefined) return clock.now() + deadlineMs;
    return this.#serverTime.deadline(serverOf(client, key), monotonicClock.now(), deadlineMs);
  }

  #key({ scope, key }: ClaimId): string {
    return claimKey(this.#parts.prefix, scope, key);
  }
}

/** Reads an answer. The error for an invalid one names the key. */
function readAnswer<Reply>(key: string, read: Read<Reply>, answer: unknown): Timed<Reply> {
  try {
    return read(answer);
  } catch (error) {
    throw new TypeError(`unexpected reply of Redis about ${key}`, { cause: error });
  }
}
