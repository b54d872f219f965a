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
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { isHeadgateError, OptionError, ScopeFullError, StoreUnavailableError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../../core/ports.ts';
import { CircuitBreaker } from '../shared/circuit-breaker.ts';
import { ClaimBatcher, type PendingCommand } from './claim-batcher.ts';
import {
  packText,
  readAbandonReply,
  readBeginReply,
  readCompleteReply,
  readHeldReply,
  readInspectReply,
  type Timed,
} from './claim-reply.ts';
import { ClaimShares } from './claim-shares.ts';
import { type Commands, commandsOf, type RedisClient } from './client.ts';
import { foreignRecord, isHarmless } from './errors.ts';
import { claimKey } from './keys.ts';
import claimSource from './lua/claim.lua';
import { checkInteger, checkPrefix } from './options.ts';
import { createScript } from './script.ts';
import { ServerTime, serverOf } from './server-time.ts';

/** Options of {@link createRedisClaimStore}. */
export interface RedisClaimStoreOptions {
  /**
   * Start of every key, so that several gateways can share a server. A limiter's store can have the same prefix.
   * @default 'headgate'
   */
  readonly prefix?: string;
  /**
   * Longest wait for an answer, in milliseconds. After it the call throws `StoreTimeoutError`. The command may still be
   * executed, which is harmless: see docs/claims.md.
   * @default 250
   */
  readonly deadlineMs?: number;
  /**
   * Most claims of one scope that this process began and that have not expired (I13). A scope that has as many gets
   * `ScopeFullError` for its new keys, counted in `stats().refusedInScope`; its known keys and other scopes are not
   * affected. The count is approximate, per process, and 0 after a restart. Released claims take at most half of it:
   * past that, a claim is forgotten when it is released.
   * @default 1_000_000
   */
  readonly maxClaimsPerScope?: number;
  /** Called with the error of every call that failed, for a log. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * For tests: a clock that returns integer milliseconds, instead of the server's clock.
   * @default the server's clock
   */
  readonly clock?: Clock | undefined;
}

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
}

/**
 * A {@link ClaimStore} in Redis or Redis Cluster, which any number of processes can share. Its methods throw
 * `StoreTimeoutError`, or `StoreUnavailableError` with the reason as its cause. The command may have been executed
 * anyway.
 */
export interface RedisClaimStore extends ClaimStore {
  begin(id: ClaimId, command: BeginCommand): Promise<BeginReply>;
  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply>;
  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply>;
  complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply>;
  abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply>;
  inspect(id: ClaimId): Promise<ClaimView | undefined>;
  /** Returns the current figures. */
  stats(): RedisClaimStoreStats;
}

const script = /* @__PURE__ */ createScript(claimSource);

/**
 * Creates a claim store in Redis. It has one hash per idempotency key. A command is one atomic script and one round
 * trip, and uses the server's clock. Commands of one turn of the event loop are sent together. The store never
 * connects, configures or closes the client.
 * @throws OptionError
 */
export function createRedisClaimStore(client: RedisClient, options: RedisClaimStoreOptions = {}): RedisClaimStore {
  checkOptions(options, ['prefix', 'deadlineMs', 'maxClaimsPerScope', 'onError', 'clock'], 'options');
  const commands = commandsOf(client);
  if (commands === undefined) throw new OptionError('client', client, 'must be a client of ioredis or node-redis');
  const { prefix = 'headgate', deadlineMs = 250, maxClaimsPerScope = 1_000_000, onError, clock } = options;
  checkPrefix(prefix);
  checkInteger('deadlineMs', deadlineMs, 1);
  checkInteger('maxClaimsPerScope', maxClaimsPerScope, 1);
  const breaker = new CircuitBreaker({ deadlineMs, isReady: commands.isReady, isHarmless, onError });
  return new RedisClaims({ client, commands, breaker, prefix, deadlineMs, maxClaimsPerScope, clock, onError });
}

/** The parts of a store. */
interface Parts {
  readonly client: RedisClient;
  readonly commands: Commands;
  readonly breaker: CircuitBreaker;
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly maxClaimsPerScope: number;
  readonly clock: Clock | undefined;
  readonly onError: ((error: unknown) => void) | undefined;
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

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#shares = new ClaimShares(parts.maxClaimsPerScope);
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
    const args = [
      ...argsOf('begin', command),
      String(command.leaseMs),
      command.onOrphan,
      // A full scope still gets the replies about its known keys.
      fullForMs > 0 ? '1' : '0',
      dispatches ? '1' : '0',
      deadline === undefined ? '' : String(deadline),
    ];
    const reply = await this.#run(key, args, readBeginReply);
    if (reply.kind === 'full') {
      this.#refusedInScope++;
      throw new ScopeFullError(this.#parts.maxClaimsPerScope, Math.max(1, fullForMs));
    }
    if (reply.kind === 'claimed') {
      const lifetimeMs = Math.max(command.leaseMs, command.retentionMs);
      this.#shares.claimed(scope, lifetimeMs, reply.generation > 1, this.#localNow());
    }
    return reply;
  }

  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const args = [...argsOf('extend', command), String(command.leaseMs), String(command.generation)];
    return this.#run(this.#key(id), args, readHeldReply);
  }

  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const args = [...argsOf('dispatch', command), String(command.leaseMs), String(command.generation)];
    return this.#run(this.#key(id), args, readHeldReply);
  }

  complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply> {
    const { status, value } = command.result;
    const args = [...argsOf('complete', command), packText(status), value === undefined ? '' : packText(value)];
    return this.#run(this.#key(id), args, readCompleteReply);
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
    const reply = await this.#run(this.#key(id), args, readAbandonReply);
    if (reply.kind === 'released') this.#shares.released(scope, lifetimeMs, this.#localNow());
    return reply;
  }

  inspect(id: ClaimId): Promise<ClaimView | undefined> {
    return this.#run(this.#key(id), ['inspect'], readInspectReply);
  }

  stats(): RedisClaimStoreStats {
    const { breaker } = this.#parts;
    return {
      calls: this.#calls,
      timeouts: this.#timeouts,
      late: this.#late,
      lateBegins: this.#lateBegins,
      refusedInScope: this.#refusedInScope,
      breaker: breaker.state,
    };
  }

  #run<Reply>(key: string, args: readonly string[], read: (reply: unknown) => Timed<Reply>): Promise<Reply> {
    this.#calls++;
    return new Promise((resolve, reject) => {
      const settle = (answer: unknown): void => {
        const { now, reply } = readAnswer(key, read, answer);
        this.#serverTime.report(serverOf(this.#parts.client, key), now, monotonicClock.now());
        // Counted here, because the senders of most late commands do not wait any more.
        if ((reply as { readonly kind?: unknown } | undefined)?.kind === 'late') this.#lateBegins++;
        resolve(reply);
      };
      this.#batcher.add({ key, args, settle, reject });
    });
  }

  /** Sends commands in one call. If the call fails, all of them fail, because each of them may have been executed. */
  async #send(pending: readonly PendingCommand[]): Promise<void> {
    const { commands, breaker, clock } = this.#parts;
    const keys = pending.map(({ key }) => key);
    const args = [clock === undefined ? '' : String(clock.now())];
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
      this.#parts.onError?.(error);
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

  #key({ scope, key }: ClaimId): string {
    return claimKey(this.#parts.prefix, scope, key);
  }
}

/** The first arguments of every command except `inspect`. */
function argsOf(name: string, { token, fingerprint, retentionMs }: ClaimCommand): string[] {
  return [name, packText(token), packText(fingerprint), String(retentionMs)];
}

/** Reads an answer. The error for an invalid one names the key. */
function readAnswer<Reply>(key: string, read: (reply: unknown) => Timed<Reply>, answer: unknown): Timed<Reply> {
  try {
    return read(answer);
  } catch (error) {
    throw new TypeError(`unexpected reply of Redis about ${key}`, { cause: error });
  }
}
