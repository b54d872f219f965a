import type {
  AbandonCommand,
  AbandonReply,
  BeginCommand,
  BeginReply,
  CompleteCommand,
  CompleteReply,
  HeldCommand,
  HeldReply,
} from '../../core/claim.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { OptionError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../../core/ports.ts';
import {
  packText,
  readAbandonReply,
  readBeginReply,
  readCompleteReply,
  readHeldReply,
  readInspectReply,
  type Timed,
} from './claim-reply.ts';
import { type Commands, commandsOf, type RedisClient } from './client.ts';
import { Guard } from './guard.ts';
import { claimKey } from './keys.ts';
import claimSource from './lua/claim.lua';
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
  stats(): RedisClaimStoreStats;
}

const script = createScript(claimSource);

/**
 * Claims in Redis: one hash an idempotency key, one atomic script and one round trip a command, by the server's own clock.
 * The client stays yours: the store never connects, configures or closes it.
 * @throws OptionError
 */
export function createRedisClaimStore(client: RedisClient, options: RedisClaimStoreOptions = {}): RedisClaimStore {
  checkOptions(options, ['prefix', 'deadlineMs', 'onError', 'clock'], 'options');
  const commands = commandsOf(client);
  if (commands === undefined) throw new OptionError('client', client, 'must be a client of ioredis or node-redis');
  const { prefix = 'headgate', deadlineMs = 250, onError, clock } = options;
  if (typeof prefix !== 'string' || /[{}]/.test(prefix)) {
    throw new OptionError('prefix', prefix, 'must be a string without braces');
  }
  if (!Number.isSafeInteger(deadlineMs) || deadlineMs < 1) {
    throw new OptionError('deadlineMs', deadlineMs, 'must be an integer from 1 on');
  }
  const guard = new Guard({ deadlineMs, isReady: commands.isReady, onError });
  return new Store({ client, commands, guard, prefix, deadlineMs, clock });
}

/** What a store is made of. */
interface Parts {
  readonly client: RedisClient;
  readonly commands: Commands;
  readonly guard: Guard;
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly clock: Clock | undefined;
}

class Store implements RedisClaimStore {
  readonly synchronous = false;
  readonly #parts: Parts;
  readonly #serverTime = new ServerTime();
  #calls = 0;
  #lateBegins = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async begin(id: ClaimId, command: BeginCommand): Promise<BeginReply> {
    const { leaseMs, onOrphan } = command;
    const deadline = command.deadline ?? (command.dispatch ? this.#deadline(id) : undefined);
    // A mark without a deadline could land after the claim was given up: an orphan that nobody caused.
    const marks = command.dispatch && deadline !== undefined;
    const args = [String(leaseMs), onOrphan, marks ? '1' : '0', deadline === undefined ? '' : String(deadline)];
    // Counted where it is read, since nobody waits any more for most of them.
    const read = (answer: unknown): Timed<BeginReply> => {
      const timed = readBeginReply(answer);
      if (timed.reply.kind === 'late') this.#lateBegins++;
      return timed;
    };
    return this.#ask(id, read, 'begin', command, args);
  }

  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    return this.#ask(id, readHeldReply, 'extend', command, [String(command.leaseMs), String(command.generation)]);
  }

  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    return this.#ask(id, readHeldReply, 'dispatch', command, [String(command.leaseMs), String(command.generation)]);
  }

  complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply> {
    const { status, value } = command.result;
    const args = [packText(status), value === undefined ? '' : packText(value)];
    return this.#ask(id, readCompleteReply, 'complete', command, args);
  }

  abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply> {
    const { generation } = command;
    return this.#ask(id, readAbandonReply, 'abandon', command, [generation === undefined ? '' : String(generation)]);
  }

  inspect(id: ClaimId): Promise<ClaimView | undefined> {
    return this.#ask(id, readInspectReply, 'inspect');
  }

  stats(): RedisClaimStoreStats {
    const { guard } = this.#parts;
    return {
      calls: this.#calls,
      timeouts: guard.timeouts,
      late: guard.late,
      lateBegins: this.#lateBegins,
      breaker: guard.state,
    };
  }

  async #ask<Reply>(
    id: ClaimId,
    read: (reply: unknown) => Timed<Reply>,
    name: string,
    command?: { readonly token: string; readonly fingerprint: string; readonly retentionMs: number },
    rest: readonly string[] = [],
  ): Promise<Reply> {
    const { client, commands, guard, clock } = this.#parts;
    const key = this.#key(id);
    const common =
      command === undefined
        ? []
        : [packText(command.token), packText(command.fingerprint), String(command.retentionMs)];
    const args = [name, clock === undefined ? '' : String(clock.now()), ...common, ...rest];
    this.#calls++;
    return guard.run(async () => {
      const answer = await script.run(commands, [key], args);
      const { now, reply } = readOf(key, read, answer);
      this.#serverTime.report(serverOf(client, key), now, monotonicClock.now());
      return reply;
    });
  }

  /** When this process will have given a command up that it sends now, in the time of the key's server; undefined where that is not known. */
  #deadline(id: ClaimId): number | undefined {
    const { client, deadlineMs, clock } = this.#parts;
    if (clock !== undefined) return clock.now() + deadlineMs;
    return this.#serverTime.deadline(serverOf(client, this.#key(id)), monotonicClock.now(), deadlineMs);
  }

  #key({ scope, key }: ClaimId): string {
    return claimKey(this.#parts.prefix, scope, key);
  }
}

/** An answer that makes no sense is a failure like any other, and says of which key. */
function readOf<Reply>(key: string, read: (reply: unknown) => Timed<Reply>, answer: unknown): Timed<Reply> {
  try {
    return read(answer);
  } catch (error) {
    throw new TypeError(`unexpected reply of Redis about ${key}`, { cause: error });
  }
}
