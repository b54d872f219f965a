import type { LimitStore } from '../../../src/core/ports.ts';
import { createLeasesWith } from '../../../src/leases/create-leases.ts';
import type { LeaseEvent, Leases } from '../../../src/limits/index.ts';
import { createMemoryStore, type MemoryStore } from '../../../src/stores/memory/limits.ts';

/**
 * What happens to one call of a process: it is executed and answered at once; twice, as by a client library that sends it
 * again; not at all; without an answer; or both wait until the history says otherwise.
 */
export type Fate = 'at once' | 'twice' | 'lost' | 'no answer' | 'waits' | 'answer waits';

interface Call {
  readonly execute: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  isExecuted: boolean;
  result?: { readonly value: unknown } | { readonly error: unknown };
}

/** A store that every process of a test calls over a network that can lose and repeat. */
export class Fleet {
  /** True time in milliseconds, which the server's clock shows. */
  now = 1_000_000_000_000;
  readonly store: MemoryStore = createMemoryStore({ clock: { now: () => this.now + this.serverStep } });
  serverStep = 0;
  readonly processes: Process[];
  readonly leaseMs: number;

  constructor(processes: number, leaseMs: number) {
    this.leaseMs = leaseMs;
    this.processes = Array.from({ length: processes }, () => new Process(this));
  }

  /** A process dies, with everything that it has, and another one begins. Its calls may still be executed. */
  crash(index: number): void {
    const calls = this.processes[index]?.calls ?? [];
    this.processes[index] = new Process(this, calls);
  }

  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left--) {
      this.now++;
      for (const process of this.processes) await process.tick();
    }
  }
}

/** One process: its leases, its clocks and its calls. */
export class Process {
  readonly leases: Leases;
  readonly store: LimitStore;
  readonly events: LeaseEvent[] = [];
  /** Calls that wait. The first ones can be those of a process that died here before. */
  readonly calls: Call[];
  fate: Fate = 'at once';
  /** Stopped, as by SIGSTOP: its clocks go on. Suspended: only its wall clock does. */
  state: 'running' | 'stopped' | 'suspended' = 'running';
  wallStep = 0;
  readonly #fleet: Fleet;
  #suspendedMs = 0;
  #timers: { readonly at: number; readonly call: () => void }[] = [];

  constructor(fleet: Fleet, calls: Call[] = []) {
    this.#fleet = fleet;
    this.calls = calls;
    const now = (): number => fleet.now - this.#suspendedMs;
    const after = (ms: number, call: () => void) => {
      const timer = { at: now() + ms, call };
      this.#timers.push(timer);
      return () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      };
    };
    const wall = { now: () => fleet.now + this.wallStep };
    const options = { leaseMs: fleet.leaseMs, onEvent: (event: LeaseEvent) => void this.events.push(event) };
    this.leases = createLeasesWith(options, { now, after }, wall);
    this.store = this.leases.addTo(this.#remote());
  }

  /** A millisecond has passed. */
  async tick(): Promise<void> {
    if (this.state === 'suspended') this.#suspendedMs++;
    if (this.state !== 'running') return;
    const now = this.#fleet.now - this.#suspendedMs;
    const due = this.#timers.filter(({ at }) => at <= now);
    if (due.length === 0) return;
    this.#timers = this.#timers.filter(({ at }) => at > now);
    for (const { call } of due) call();
    await settled();
  }

  /** A call that waits goes on. */
  async release(pick: number, fate: Fate): Promise<void> {
    const call = this.calls[pick % this.calls.length];
    if (call === undefined) return;
    this.calls.splice(this.calls.indexOf(call), 1);
    this.#handle(call, fate);
    await settled();
  }

  #handle(call: Call, fate: Fate): void {
    const isAgain = fate === 'twice';
    const isRun = fate !== 'lost' && fate !== 'waits';
    if (isRun && !call.isExecuted) {
      call.isExecuted = true;
      call.result = attempt(call.execute);
    }
    // The answer to the second execution is lost.
    if (isAgain) attempt(call.execute);
    if (fate === 'waits' || fate === 'answer waits') this.calls.push(call);
    else if (fate === 'lost' || fate === 'no answer') call.reject(new Error('no answer'));
    else if (call.result !== undefined && 'error' in call.result) call.reject(call.result.error);
    else call.resolve(call.result?.value);
  }

  #remote(): LimitStore {
    const { store } = this.#fleet;
    const send =
      <Args extends unknown[], Result>(execute: (...args: Args) => Result, mayRepeat = true) =>
      (...args: Args): Promise<Result> => {
        const fate = this.fate === 'twice' && !mayRepeat ? 'at once' : this.fate;
        this.fate = 'at once';
        return new Promise((resolve, reject) => {
          const run = () => execute.apply(store, args);
          this.#handle({ execute: run, resolve: resolve as Call['resolve'], reject, isExecuted: false }, fate);
        });
      };
    // An instance is named by the millisecond of its start, so none starts in the one in which another was deleted.
    const deleting =
      <Args extends unknown[]>(execute: (...args: Args) => void) =>
      (...args: Args): void => {
        execute.apply(store, args);
        this.#fleet.now++;
      };
    return {
      synchronous: false,
      consume: send(store.consume),
      peek: send(store.peek),
      // A refund without a receipt is not protected, with leases or without.
      settle: send(store.settle, false),
      settleOnce: send(store.settleOnce),
      lease: send(store.lease),
      charge: send(store.charge),
      reset: send(deleting(store.reset)),
      block: send(deleting(store.block)),
      unblock: send(store.unblock),
      blocked: send(store.blocked),
    } as LimitStore;
  }
}

function attempt(execute: () => unknown): NonNullable<Call['result']> {
  try {
    return { value: execute() };
  } catch (error) {
    return { error };
  }
}

/** Resolves when every promise that can go on has gone on. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 12; i++) await undefined;
}
