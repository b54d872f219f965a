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
import { isHeadgateError, OptionError, StoreUnavailableError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../../core/ports.ts';
import { Guard } from '../shared/guard.ts';
import {
  packText,
  readAbandonReply,
  readBeginReply,
  readCompleteReply,
  readHeldReply,
  readInspectReply,
  type Timed,
} from './claim-reply.ts';
import { ClaimTurn, type Job } from './claim-turn.ts';
import { type Commands, commandsOf, type RedisClient } from './client.ts';
import { claimKey } from './keys.ts';
import claimSource from './lua/claim.lua';
import { checkInteger, checkPrefix } from './options.ts';
import { createScript } from './script.ts';
import { ServerTime, serverOf } from './server-time.ts';

/** Options of {@link createRedisClaimStore}. */
export interface RedisClaimStoreOptions {
  /**
   * In front of every key, so that several gateways can share a server without meeting. A limiter's store may have the same one.
   * @default 'headgate'
   */
  readonly prefix?: string;
  /**
   * Longest wait for one answer, in milliseconds; past it `StoreTimeoutError`. The command may still land, which is harmless: see docs/claims.md.
   * @default 250
   */
  readonly deadlineMs?: number;
  /** Hears of every call that failed, for a log. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * For tests: time in integer milliseconds instead of the server's own.
   * @default the server's clock
   */
  readonly clock?: Clock | undefined;
}

/** What an operator sees of a Redis claim store, since its start. */
export interface RedisClaimStoreStats {
  /** Commands sent. */
  readonly calls: number;
  /** Commands given up at their deadline, and those of them that were answered after all. */
  readonly timeouts: number;
  /** Answers that came after their command had been given up: counted in `timeouts` before. */
  readonly late: number;
  /** Claims refused by the server because their `begin`, which carried a deadline, came past it. */
  readonly lateBegins: number;
  /** `open`: Redis is taken for away, and asked again twice a second. */
  readonly breaker: 'closed' | 'open' | 'half-open';
}

/**
 * A {@link ClaimStore} in Redis or Redis Cluster, shared by any number of processes. Its methods throw `StoreTimeoutError`, or
 * `StoreUnavailableError` with the reason as its cause; either way the command may have been carried out.
 */
export interface RedisClaimStore extends ClaimStore {
  begin(id: ClaimId, command: BeginCommand): Promise<BeginReply>;
  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply>;
  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply>;
  complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply>;
  abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply>;
  inspect(id: ClaimId): Promise<ClaimView | undefined>;
  /** Its figures, as they are now. */
  stats(): RedisClaimStoreStats;
}

const script = /* @__PURE__ */ createScript(claimSource);

/**
 * Claims in Redis: one hash an idempotency key, one atomic script and one round trip a command, by the server's own clock.
 * Commands of one turn of the event loop travel together.
 * The client stays yours: the store never connects, configures or closes it.
 * @throws OptionError
 */
export function createRedisClaimStore(client: RedisClient, options: RedisClaimStoreOptions = {}): RedisClaimStore {
  checkOptions(options, ['prefix', 'deadlineMs', 'onError', 'clock'], 'options');
  const commands = commandsOf(client);
  if (commands === undefined) throw new OptionError('client', client, 'must be a client of ioredis or node-redis');
  const { prefix = 'headgate', deadlineMs = 250, onError, clock } = options;
  checkPrefix(prefix);
  checkInteger('deadlineMs', deadlineMs, 1);
  const guard = new Guard({ deadlineMs, isReady: commands.isReady, onError });
  return new Store({ client, commands, guard, prefix, deadlineMs, clock, onError });
}

/** What a store is made of. */
interface Parts {
  readonly client: RedisClient;
  readonly commands: Commands;
  readonly guard: Guard;
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly clock: Clock | undefined;
  readonly onError: ((error: unknown) => void) | undefined;
}

class Store implements RedisClaimStore {
  readonly synchronous = false;
  readonly #parts: Parts;
  readonly #serverTime = new ServerTime();
  readonly #turn: ClaimTurn;
  #calls = 0;
  #timeouts = 0;
  #late = 0;
  #lateBegins = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#turn = new ClaimTurn({ alone: parts.commands.isCluster, send: (jobs) => void this.#send(jobs) });
  }

  begin(id: ClaimId, command: BeginCommand): Promise<BeginReply> {
    const key = this.#key(id);
    const deadline = command.deadline ?? (command.dispatch ? this.#deadline(key) : undefined);
    // A mark without a deadline could land after the claim was given up: an orphan that nobody caused.
    const marks = command.dispatch && deadline !== undefined;
    const args = [
      ...common('begin', command),
      String(command.leaseMs),
      command.onOrphan,
      marks ? '1' : '0',
      deadline === undefined ? '' : String(deadline),
    ];
    return this.#ask(key, args, readBeginReply);
  }

  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const args = [...common('extend', command), String(command.leaseMs), String(command.generation)];
    return this.#ask(this.#key(id), args, readHeldReply);
  }

  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const args = [...common('dispatch', command), String(command.leaseMs), String(command.generation)];
    return this.#ask(this.#key(id), args, readHeldReply);
  }

  complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply> {
    const { status, value } = command.result;
    const args = [...common('complete', command), packText(status), value === undefined ? '' : packText(value)];
    return this.#ask(this.#key(id), args, readCompleteReply);
  }

  abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply> {
    const { generation } = command;
    const args = [...common('abandon', command), generation === undefined ? '' : String(generation)];
    return this.#ask(this.#key(id), args, readAbandonReply);
  }

  inspect(id: ClaimId): Promise<ClaimView | undefined> {
    return this.#ask(this.#key(id), ['inspect'], readInspectReply);
  }

  stats(): RedisClaimStoreStats {
    const { guard } = this.#parts;
    return {
      calls: this.#calls,
      timeouts: this.#timeouts,
      late: this.#late,
      lateBegins: this.#lateBegins,
      breaker: guard.state,
    };
  }

  #ask<Reply>(key: string, args: readonly string[], read: (reply: unknown) => Timed<Reply>): Promise<Reply> {
    this.#calls++;
    return new Promise((resolve, reject) => {
      const settle = (answer: unknown): void => {
        const { now, reply } = readOf(key, read, answer);
        this.#serverTime.report(serverOf(this.#parts.client, key), now, monotonicClock.now());
        // Counted where it is read, since nobody waits any more for most of them.
        if ((reply as { readonly kind?: unknown } | undefined)?.kind === 'late') this.#lateBegins++;
        resolve(reply);
      };
      this.#turn.add({ key, args, settle, reject });
    });
  }

  /** What fails as a whole fails for each: all that is known is that each may have been carried out. */
  async #send(jobs: readonly Job[]): Promise<void> {
    const { commands, guard, clock } = this.#parts;
    const keys = jobs.map(({ key }) => key);
    const args = [clock === undefined ? '' : String(clock.now())];
    for (const job of jobs) args.push(...job.args);
    let givenUp = false;
    try {
      await guard.run(async () => {
        const answer = await script.run(commands, keys, args);
        if (givenUp) this.#late += jobs.length;
        const [only] = jobs;
        if (jobs.length === 1) only?.settle(answer);
        else this.#dealOut(jobs, answer);
      });
    } catch (error) {
      if (isHeadgateError(error, 'store_timeout')) {
        givenUp = true;
        this.#timeouts += jobs.length;
      }
      for (const { reject } of jobs) reject(error);
    }
  }

  /** An answer of its own that makes no sense, or is a fault of the record, is that one's failure alone. */
  #dealOut(jobs: readonly Job[], answer: unknown): void {
    if (!Array.isArray(answer) || answer.length !== jobs.length + 1) throw new TypeError('unexpected reply of Redis');
    const [now, ...answers]: unknown[] = answer;
    for (const [i, { key, settle, reject }] of jobs.entries()) {
      try {
        const own = answers[i];
        if (Array.isArray(own) && own.length === 0) throw new Error(`the record ${key} is not one of headgate's`);
        settle(Array.isArray(own) ? [now, ...own] : own);
      } catch (error) {
        this.#parts.onError?.(error);
        reject(new StoreUnavailableError(error));
      }
    }
  }

  /** When this process will have given a command up that it sends now, in the time of the key's server; undefined where that is not known. */
  #deadline(key: string): number | undefined {
    const { client, deadlineMs, clock } = this.#parts;
    if (clock !== undefined) return clock.now() + deadlineMs;
    return this.#serverTime.deadline(serverOf(client, key), monotonicClock.now(), deadlineMs);
  }

  #key({ scope, key }: ClaimId): string {
    return claimKey(this.#parts.prefix, scope, key);
  }
}

/** What every command but `inspect` says. */
function common(name: string, { token, fingerprint, retentionMs }: ClaimCommand): string[] {
  return [name, packText(token), packText(fingerprint), String(retentionMs)];
}

/** An answer that makes no sense is a failure like any other, and says of which key. */
function readOf<Reply>(key: string, read: (reply: unknown) => Timed<Reply>, answer: unknown): Timed<Reply> {
  try {
    return read(answer);
  } catch (error) {
    throw new TypeError(`unexpected reply of Redis about ${key}`, { cause: error });
  }
}
