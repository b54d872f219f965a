import { ScopeFullError } from '../../base/errors.ts';
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
import type { ClaimId, ClaimPage, ClaimStore, ClaimView, ReadyOptions } from '../../core/ports.ts';
import { CircuitBreaker } from '../shared/circuit-breaker.ts';
import { LargeValues } from '../shared/large-values.ts';
import { OutageLog } from '../shared/outage-log.ts';
import { waitUntilReady } from '../shared/ready.ts';
import type { ClaimStoreStats, ServerClaimStore } from '../shared/server-claim-store.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { ClaimCalls, type ClaimStoreParts, MAX_SMALL_BYTES } from './claim-calls.ts';
import { fillClaimOptions, type RedisClaimStoreOptions } from './claim-options.ts';
import {
  packText,
  readAbandonReply,
  readBeginReply,
  readCompleteReply,
  readForgetReply,
  readHeldReply,
  readInspectReply,
  readTime,
} from './claim-reply.ts';
import { ClaimScan, readPlace } from './claim-scan.ts';
import { ClaimShares } from './claim-shares.ts';
import { type Commands, commandsOf, type RedisClient } from './client.ts';
import { isHarmless } from './errors.ts';
import { UnresolvedClaims } from './unresolved-claims.ts';

/** A page of a list takes several round trips. */
const LIST_DEADLINES = 4;

/** Figures of a Redis claim store since its start, for operators. */
export interface RedisClaimStoreStats extends ClaimStoreStats {
  /** Answers that arrived after the deadline. Their commands are also counted in `timeouts`. */
  readonly late: number;
}

/**
 * A {@link ClaimStore} in Redis or Redis Cluster, which any number of processes can share. Its methods throw
 * `StoreTimeoutError`, or `StoreUnavailableError` with the reason as its cause. The command may have been executed
 * anyway, unless `sent` of the error is false. If the claim is completed, but its large result cannot be read, they
 * throw `ResultUnavailableError`.
 */
export interface RedisClaimStore extends ServerClaimStore {
  /** The calls of a list use their own circuit breaker, and four times the deadline. */
  list(cursor: string | undefined, count: number): Promise<ClaimPage>;
  /**
   * Resolves after the first answer of Redis, when the store's clients are connected and the script is loaded.
   * @throws StoreUnavailableError after `timeoutMs`, or the reason of the signal
   */
  ready(options?: ReadyOptions): Promise<void>;
  /** Returns the current figures. */
  stats(): RedisClaimStoreStats;
}

/**
 * Creates a claim store in Redis. It stores one hash per idempotency key. A command is one atomic script and one round
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
  const outages = outagesOf(
    commands,
    'idempotency keys',
    'requests with a key are refused, or handled without it (onStoreFailure)',
  );
  const largeOutages = outagesOf(largeCommands, 'large results', 'they are neither stored nor replayed');
  const breakerOf = ({ isReady }: Commands, { failed, answered }: OutageLog): CircuitBreaker =>
    new CircuitBreaker({ deadlineMs, isReady, isHarmless, onError: failed, onAnswer: answered });
  const breaker = breakerOf(commands, outages);
  const largeBreaker = breakerOf(largeCommands, largeOutages);
  const report = (error: unknown): void => largeOutages.report(error);
  // A list that fails says nothing about requests, so it neither stops them nor appears as their outage.
  const listBreaker = new CircuitBreaker({ deadlineMs, isReady: commands.isReady, isHarmless, onError: report });
  const large = new LargeValues({ breaker: largeBreaker, deadlineMs, maxBytesPerScope, onError: report });
  // Nor does a note that fails: the client may have been closed since. No command of a claim depends on it.
  const noteBreaker = new CircuitBreaker({ deadlineMs, isReady: commands.isReady, isHarmless, onError: () => {} });
  const ofCommands = { commands, breaker, outages, listBreaker, noteBreaker };
  return new RedisClaims({ ...filled, client, ...ofCommands, largeCommands, largeBreaker, large });
}

interface Parts extends ClaimStoreParts {
  readonly listBreaker: CircuitBreaker;
  readonly noteBreaker: CircuitBreaker;
}

class RedisClaims implements RedisClaimStore {
  readonly synchronous = false;
  readonly #parts: Parts;
  readonly #calls: ClaimCalls;
  readonly #shares: ClaimShares;
  readonly #scan: ClaimScan;
  readonly #unresolved: UnresolvedClaims;
  #refusedInScope = 0;
  #dropped = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#calls = new ClaimCalls(parts);
    this.#shares = new ClaimShares(parts.maxClaimsPerScope);
    this.#scan = new ClaimScan(parts.commands, parts.prefix, parts.clock);
    this.#unresolved = new UnresolvedClaims({
      ...parts,
      run: (call) => parts.noteBreaker.run(call),
      forget: (id) => this.#calls.run(id, ['forget'], readForgetReply),
    });
  }

  async begin(id: ClaimId, command: BeginCommand): Promise<BeginReply> {
    const { scope } = id;
    const fullForMs = this.#shares.fullForMs(scope, this.#localNow());
    const deadline = command.deadline ?? (command.dispatch ? this.#calls.deadline(id) : undefined);
    // A command without a deadline could dispatch after its sender gave it up. That would leave an orphan.
    const dispatches = command.dispatch && deadline !== undefined;
    // A full scope still gets the replies about its known keys.
    const full = fullForMs > 0 ? '1' : '0';
    const start = [...argsOf('begin', command), String(command.leaseMs), command.onOrphan, full];
    const args = [...start, dispatches ? '1' : '0', deadline === undefined ? '' : String(deadline)];
    // It asks for the value of a completed claim later, when the deadline can be over. Without the dispatch it needs
    // none.
    const argsForValue = [...start, '0', command.deadline === undefined ? '' : String(command.deadline)];
    const reply = await this.#calls.run(id, args, readBeginReply, argsForValue);
    if (reply.kind === 'full') {
      this.#refusedInScope++;
      throw new ScopeFullError(this.#parts.maxClaimsPerScope, Math.max(1, fullForMs));
    }
    if (reply.kind === 'claimed') {
      const lifetimeMs = Math.max(command.leaseMs, command.retentionMs);
      this.#shares.claimed(id.scope, lifetimeMs, reply.generation > 1, this.#localNow());
    }
    if (reply.kind === 'orphan' || (reply.kind === 'claimed' && (reply.dispatched || reply.inherited)))
      this.#unresolved.add(id);
    return reply;
  }

  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const args = [...argsOf('extend', command), String(command.leaseMs), String(command.generation)];
    return this.#calls.run(id, args, readHeldReply);
  }

  async dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const args = [...argsOf('dispatch', command), String(command.leaseMs), String(command.generation)];
    const reply = await this.#calls.run(id, args, readHeldReply);
    if (reply.kind === 'ok') this.#unresolved.add(id);
    return reply;
  }

  async complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply> {
    const reply = await this.#complete(id, command);
    if (reply.kind !== 'lost') this.#unresolved.remove(id);
    return reply;
  }

  async #complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply> {
    const { status, value } = command.result;
    const args = [...argsOf('complete', command), packText(status)];
    if (value === undefined) return this.#calls.run(id, [...args, ''], readCompleteReply);
    const withValue = [...args, packText(value)];
    if (value.length < MAX_SMALL_BYTES) return this.#calls.run(id, withValue, readCompleteReply);
    try {
      return await this.#calls.runLarge(id, withValue, readCompleteReply, Buffer.byteLength(value));
    } catch (error) {
      // The sender tries again in the background, with the value.
      if (this.#calls.outage.mayEndSoon(error)) throw error;
      // If the server does not answer at all, this throws. Sent to a frozen server, the outcome without its value could
      // overtake the value.
      await this.#calls.run(id, ['inspect'], readTime);
      // The claim must not wait for the value. If the value arrives first after all, it stays: the first outcome wins.
      const reply = await this.#calls.run(id, [...args, ''], readCompleteReply);
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
    const reply = await this.#calls.run(id, args, readAbandonReply);
    // The earlier owner's outcome is still unknown.
    if (reply.kind === 'orphaned') return { kind: 'released' };
    if (reply.kind === 'released') {
      this.#shares.released(scope, lifetimeMs, this.#localNow());
      this.#unresolved.remove(id);
    }
    return reply;
  }

  onForgotten(listener: (id: ClaimId) => void): () => void {
    return this.#unresolved.onForgotten(listener);
  }

  inspect(id: ClaimId): Promise<ClaimView | undefined> {
    return this.#calls.run(id, ['inspect'], readInspectReply);
  }

  async list(cursor: string | undefined, count: number): Promise<ClaimPage> {
    const { listBreaker, deadlineMs } = this.#parts;
    const place = cursor === undefined ? undefined : readPlace(cursor);
    const send = () => listBreaker.run(() => this.#scan.page(place, count), LIST_DEADLINES * deadlineMs);
    return traceCall('claims', 'list', listBreaker, send);
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
        // Its reply also contains the server's time, which the first `begin` needs.
        probe: () => this.inspect({ scope: '', key: '' }),
      },
      options,
    );
  }

  stats(): RedisClaimStoreStats {
    const { breaker, large, largeBreaker } = this.#parts;
    return {
      calls: this.#calls.count,
      timeouts: this.#calls.timeouts,
      late: this.#calls.late,
      lateBegins: this.#calls.lateBegins,
      refusedInScope: this.#refusedInScope,
      forgottenUnresolved: this.#unresolved.forgotten,
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

  /** Time for what only this process counts. */
  #localNow(): number {
    return (this.#parts.clock ?? monotonicClock).now();
  }
}

/** The first arguments of every command except `inspect`. */
function argsOf(name: string, { token, fingerprint, retentionMs }: ClaimCommand): string[] {
  return [name, packText(token), packText(fingerprint), String(retentionMs)];
}
