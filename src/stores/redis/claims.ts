import type {
  AbandonCommand,
  AbandonReply,
  BeginCommand,
  BeginReply,
  ClaimCommand,
  CompleteCommand,
  CompleteReply,
  HeldCommand,
  HeldReply,
} from '../../core/claim.ts';
import { monotonicClock } from '../../core/clock.ts';
import { isHeadgateError, ResultUnavailableError, ScopeFullError, StoreUnavailableError } from '../../core/errors.ts';
import type { ClaimId, ClaimStore, ClaimView, ReadyOptions } from '../../core/ports.ts';
import { CircuitBreaker } from '../shared/circuit-breaker.ts';
import { OutageLog } from '../shared/outage-log.ts';
import { waitUntilReady } from '../shared/ready.ts';
import { ClaimBatcher, type PendingCommand } from './claim-batcher.ts';
import { type FilledClaimOptions, fillClaimOptions, type RedisClaimStoreOptions } from './claim-options.ts';
import {
  packText,
  readAbandonReply,
  readBeginReply,
  readCompleteReply,
  readHeldReply,
  readInspectReply,
  readTime,
  type Timed,
} from './claim-reply.ts';
import { ClaimShares } from './claim-shares.ts';
import { type Commands, commandsOf, type RedisClient } from './client.ts';
import { foreignRecord, isHarmless } from './errors.ts';
import { claimKey } from './keys.ts';
import { LargeValueOutage } from './large-value-outage.ts';
import { LargeValues } from './large-values.ts';
import claimSource from './lua/claim.lua';
import { createScript } from './script.ts';
import { ServerTime, serverOf } from './server-time.ts';

/** Figures of a Redis claim store since its start, for operators. */
export interface RedisClaimStoreStats {
  /** Commands that were sent. */
  readonly calls: number;
  /** Commands that were given up at the deadline. */
  readonly timeouts: number;
  /** Answers that arrived after the deadline. Their commands are also counted in `timeouts`. */
  readonly late: number;
  /** `begin` commands that did nothing, because they reached the server after the deadline that they carry. */
  readonly lateBegins: number;
  /** New keys that were refused because their scope was full. */
  readonly refusedInScope: number;
  /** The circuit breaker. `open`: calls fail at once, and one call every 500 ms tests whether Redis is back. */
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** Results of more than 8 KiB. They have their own deadline, by size, and their own circuit breaker. */
  readonly large: {
    /** Bytes that wait or are under way now. */
    readonly bytes: number;
    /** Calls that were given up at their deadline. */
    readonly timeouts: number;
    /** Calls that were not sent, because of the budget of their scope or because their turn came too late. */
    readonly refused: number;
    /** Outcomes that were stored without their value, because it could not be stored in time (I7). */
    readonly dropped: number;
    readonly breaker: 'closed' | 'open' | 'half-open';
  };
}

/**
 * A {@link ClaimStore} in Redis or Redis Cluster, which any number of processes can share. Its methods throw
 * `StoreTimeoutError`, or `StoreUnavailableError` with the reason as its cause. The command may have been executed
 * anyway, unless `sent` of the error is false. If the claim is completed, but its large result cannot be read, they
 * throw `ResultUnavailableError`.
 */
export interface RedisClaimStore extends ClaimStore {
  begin(id: ClaimId, command: BeginCommand): Promise<BeginReply>;
  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply>;
  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply>;
  complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply>;
  abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply>;
  inspect(id: ClaimId): Promise<ClaimView | undefined>;
  /**
   * Resolves after the first answer of Redis, when the store's clients are connected and the script is loaded.
   * @throws StoreUnavailableError after `timeoutMs`, or the reason of the signal
   */
  ready(options?: ReadyOptions): Promise<void>;
  /** Returns the current figures. */
  stats(): RedisClaimStoreStats;
}

const script = /* @__PURE__ */ createScript(claimSource);

/** Longer values travel by themselves. */
const MAX_SMALL_BYTES = 8_192;
/** For replies that may have a value of any length. */
const ANY_LENGTH = Number.MAX_SAFE_INTEGER;

/**
 * Creates a claim store in Redis. It has one hash per idempotency key. A command is one atomic script and one round
 * trip, and uses the server's clock. Commands of one turn of the event loop are sent together. The store never
 * connects, configures or closes the client.
 * @throws OptionError
 */
export function createRedisClaimStore(client: RedisClient, options: RedisClaimStoreOptions = {}): RedisClaimStore {
  const filled = fillClaimOptions(client, options);
  const { deadlineMs, maxLargeBytesPerScope: maxBytesPerScope, largeClient, onError, log } = filled;
  const commands = commandsOf('client', client);
  const largeCommands = commandsOf('largeValues.client', largeClient);
  const outagesOf = ({ isReady }: Commands, what: string, effect: string): OutageLog =>
    new OutageLog({ what, effect, isReady, log, onError, isHarmless });
  const outages = outagesOf(commands, 'idempotency keys', 'keys are refused');
  const largeOutages = outagesOf(largeCommands, 'large results', 'they are neither stored nor replayed');
  const breakerOf = ({ isReady }: Commands, { failed, answered }: OutageLog): CircuitBreaker =>
    new CircuitBreaker({ deadlineMs, isReady, isHarmless, onError: failed, onAnswer: answered });
  const breaker = breakerOf(commands, outages);
  const largeBreaker = breakerOf(largeCommands, largeOutages);
  const report = (error: unknown): void => largeOutages.report(error);
  const large = new LargeValues({ breaker: largeBreaker, deadlineMs, maxBytesPerScope, onError: report });
  return new RedisClaims({ ...filled, client, commands, breaker, outages, largeCommands, largeBreaker, large });
}

/** Reads the reply to one kind of command. */
type Read<Reply> = (reply: unknown) => Timed<Reply>;

/** The parts of a store, and its options. */
interface Parts extends FilledClaimOptions {
  readonly client: RedisClient;
  readonly commands: Commands;
  readonly breaker: CircuitBreaker;
  readonly outages: OutageLog;
  readonly largeCommands: Commands;
  readonly largeBreaker: CircuitBreaker;
  readonly large: LargeValues;
}

class RedisClaims implements RedisClaimStore {
  readonly synchronous = false;
  readonly #parts: Parts;
  readonly #serverTime = new ServerTime();
  readonly #batcher: ClaimBatcher;
  readonly #shares: ClaimShares;
  #calls = 0;
  #timeouts = 0;
  #late = 0;
  #lateBegins = 0;
  #refusedInScope = 0;
  #dropped = 0;
  readonly #outage: LargeValueOutage;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#shares = new ClaimShares(parts.maxClaimsPerScope);
    this.#outage = new LargeValueOutage(parts);
    this.#batcher = new ClaimBatcher({
      oneCommandPerCall: parts.commands.isCluster,
      send: (pending) => void this.#send(pending),
    });
  }

  async begin(id: ClaimId, command: BeginCommand): Promise<BeginReply> {
    const { scope } = id;
    const key = this.#key(id);
    const fullForMs = this.#shares.fullForMs(scope, this.#localNow());
    const deadline = command.deadline ?? (command.dispatch ? this.#deadline(key) : undefined);
    // A command without a deadline could dispatch after its sender has given it up. That would leave an orphan.
    const dispatches = command.dispatch && deadline !== undefined;
    // A full scope still gets the replies about its known keys.
    const full = fullForMs > 0 ? '1' : '0';
    const start = [...argsOf('begin', command), String(command.leaseMs), command.onOrphan, full];
    const args = [...start, dispatches ? '1' : '0', deadline === undefined ? '' : String(deadline)];
    // It asks for the value of a completed claim later, when the deadline can be over. Without the dispatch it needs
    // none.
    const argsForValue = [...start, '0', command.deadline === undefined ? '' : String(command.deadline)];
    const reply = await this.#run(id, args, readBeginReply, argsForValue);
    if (reply.kind === 'full') {
      this.#refusedInScope++;
      throw new ScopeFullError(this.#parts.maxClaimsPerScope, Math.max(1, fullForMs));
    }
    if (reply.kind === 'claimed') {
      const lifetimeMs = Math.max(command.leaseMs, command.retentionMs);
      this.#shares.claimed(id.scope, lifetimeMs, reply.generation > 1, this.#localNow());
    }
    return reply;
  }

  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const args = [...argsOf('extend', command), String(command.leaseMs), String(command.generation)];
    return this.#run(id, args, readHeldReply);
  }

  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const args = [...argsOf('dispatch', command), String(command.leaseMs), String(command.generation)];
    return this.#run(id, args, readHeldReply);
  }

  async complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply> {
    const { status, value } = command.result;
    const args = [...argsOf('complete', command), packText(status)];
    if (value === undefined) return this.#run(id, [...args, ''], readCompleteReply);
    const withValue = [...args, packText(value)];
    if (value.length < MAX_SMALL_BYTES) return this.#run(id, withValue, readCompleteReply);
    try {
      return await this.#runLarge(id, withValue, readCompleteReply, Buffer.byteLength(value));
    } catch (error) {
      // The sender tries again in the background, with the value.
      if (this.#outage.mayEndSoon(error)) throw error;
      // If the server does not answer at all, this throws. Sent to a frozen server, the outcome without its value could
      // overtake the value.
      await this.#run(id, ['inspect'], readTime);
      // The claim must not wait for the value. If the value arrives first after all, it stays: the first outcome wins.
      const reply = await this.#run(id, [...args, ''], readCompleteReply);
      if (reply.kind !== 'ok') return reply;
      this.#dropped++;
      return { kind: 'ok', valueDropped: true };
    }
  }

  async abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply> {
    const { scope } = id;
    const { generation, retentionMs } = command;
    const mayStore = this.#shares.mayStoreReleased(scope, this.#localNow());
    const lifetimeMs = mayStore ? Math.min(retentionMs, command.releasedRetentionMs) : 0;
    const args = [
      ...argsOf('abandon', command),
      generation === undefined ? '' : String(generation),
      String(lifetimeMs),
    ];
    const reply = await this.#run(id, args, readAbandonReply);
    if (reply.kind === 'released') this.#shares.released(scope, lifetimeMs, this.#localNow());
    return reply;
  }

  inspect(id: ClaimId): Promise<ClaimView | undefined> {
    return this.#run(id, ['inspect'], readInspectReply);
  }

  ready(options?: ReadyOptions): Promise<void> {
    const { commands, largeCommands } = this.#parts;
    return waitUntilReady(
      {
        isConnected: () => commands.isReady() && largeCommands.isReady(),
        onClientError: (listener) => {
          const stops = [commands, largeCommands].map((one) => one.onClientError(listener));
          return () => {
            for (const stop of stops) stop();
          };
        },
        // Its reply also has the server's time, which the first `begin` needs.
        probe: () => this.inspect({ scope: '', key: '' }),
      },
      options,
    );
  }

  stats(): RedisClaimStoreStats {
    const { breaker, large, largeBreaker } = this.#parts;
    return {
      calls: this.#calls,
      timeouts: this.#timeouts,
      late: this.#late,
      lateBegins: this.#lateBegins,
      refusedInScope: this.#refusedInScope,
      breaker: breaker.state,
      large: {
        bytes: large.bytes,
        timeouts: largeBreaker.timeouts,
        refused: large.refused,
        dropped: this.#dropped,
        breaker: largeBreaker.state,
      },
    };
  }

  /** @param argsForValue the arguments with which the command asks again for a large value that its reply left out */
  #run<Reply>(id: ClaimId, args: readonly string[], read: Read<Reply>, argsForValue = args): Promise<Reply> {
    const key = this.#key(id);
    this.#calls++;
    return new Promise((resolve, reject) => {
      let givenUp = false;
      this.#batcher.add({
        key,
        args,
        settle: (answer) => {
          const { reply, omittedBytes } = this.#read(key, read, answer);
          if (omittedBytes === undefined) resolve(reply);
          else if (!givenUp) resolve(this.#askForValue(id, argsForValue, read, omittedBytes));
        },
        reject: (error) => {
          givenUp = true;
          reject(error);
        },
      });
    });
  }

  /**
   * Sends a command again whose reply left out a large value. A repeated command does no harm. If the record has
   * expired meanwhile, the command does what it does for a key without a record.
   */
  async #askForValue<Reply>(id: ClaimId, args: readonly string[], read: Read<Reply>, bytes: number): Promise<Reply> {
    try {
      return await this.#runLarge(id, args, read, bytes);
    } catch (error) {
      throw new ResultUnavailableError(error);
    }
  }

  /** Sends a command by itself that carries a large value, or whose reply does. */
  #runLarge<Reply>(id: ClaimId, args: readonly string[], read: Read<Reply>, bytes: number): Promise<Reply> {
    const { large, largeCommands } = this.#parts;
    const key = this.#key(id);
    this.#calls++;
    return large.run(id.scope, bytes, async () => {
      const answer = await script.run(largeCommands, [key], [this.#now(), String(ANY_LENGTH), ...args]);
      return this.#read(key, read, answer).reply;
    });
  }

  #read<Reply>(key: string, read: Read<Reply>, answer: unknown): Timed<Reply> {
    const timed = readAnswer(key, read, answer);
    this.#serverTime.report(serverOf(this.#parts.client, key), timed.now, monotonicClock.now());
    // Counted here, because the senders of most late commands do not wait any more.
    if ((timed.reply as { readonly kind?: unknown } | undefined)?.kind === 'late') this.#lateBegins++;
    return timed;
  }

  /** Sends commands in one call. If the call fails, all of them fail, because each of them may have been executed. */
  async #send(pending: readonly PendingCommand[]): Promise<void> {
    const { commands, breaker } = this.#parts;
    const keys = pending.map(({ key }) => key);
    const args = [this.#now(), String(MAX_SMALL_BYTES)];
    for (const command of pending) args.push(...command.args);
    let givenUp = false;
    try {
      await breaker.run(async () => {
        const answer = await script.run(commands, keys, args);
        if (givenUp) this.#late += pending.length;
        const [only] = pending;
        if (pending.length > 1) this.#settleAll(pending, answer);
        else if (Array.isArray(answer)) this.#settleOne(only as PendingCommand, answer);
        else only?.settle(answer);
      });
    } catch (error) {
      if (!isHarmless((error as Error).cause)) this.#outage.smallCallFailed();
      if (isHeadgateError(error, 'store_timeout')) {
        givenUp = true;
        this.#timeouts += pending.length;
      }
      for (const { reject } of pending) reject(error);
    }
  }

  /** Gives each command its part of the answer. */
  #settleAll(pending: readonly PendingCommand[], answer: unknown): void {
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
  #settleOne({ key, settle, reject }: PendingCommand, answer: unknown): void {
    try {
      if (Array.isArray(answer) && answer.length === 1) throw foreignRecord(key);
      settle(answer);
    } catch (error) {
      this.#parts.outages.recordFailed(error);
      reject(new StoreUnavailableError(error));
    }
  }

  /** When this process gives up a command that it sends now, on the clock of the key's server; undefined if unknown. */
  #deadline(key: string): number | undefined {
    const { client, deadlineMs, clock } = this.#parts;
    if (clock !== undefined) return clock.now() + deadlineMs;
    return this.#serverTime.deadline(serverOf(client, key), monotonicClock.now(), deadlineMs);
  }

  /** Time for what only this process counts. */
  #localNow(): number {
    return (this.#parts.clock ?? monotonicClock).now();
  }

  /** The time for the script; '' is the server's clock. */
  #now(): string {
    const { clock } = this.#parts;
    return clock === undefined ? '' : String(clock.now());
  }

  #key({ scope, key }: ClaimId): string {
    return claimKey(this.#parts.prefix, scope, key);
  }
}

/** The first arguments of every command except `inspect`. */
function argsOf(name: string, { token, fingerprint, retentionMs }: ClaimCommand): string[] {
  return [name, packText(token), packText(fingerprint), String(retentionMs)];
}

/** Reads an answer. The error for an invalid one names the key. */
function readAnswer<Reply>(key: string, read: Read<Reply>, answer: unknown): Timed<Reply> {
  try {
    return read(answer);
  } catch (error) {
    throw new TypeError(`unexpected reply of Redis about ${key}`, { cause: error });
  }
}
