import type { BeginCommand, BeginReply, OnOrphan } from '../../src/core/claim.ts';
import type { ClaimStore, ClaimView } from '../../src/core/ports.ts';
import { releaseByOperator } from '../../src/idempotency/operator.ts';
import { assertEqual } from '../../src/testing/assert-equal.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import {
  ABSENT,
  afterEvent,
  COMMANDS,
  type CommandStep,
  LEASE_OVER,
  type ModelRecord,
  readStep,
  STATES,
  type Step,
  TOLD,
} from './trace.ts';

const LEASE_MS = 1_000;
const RETENTION_MS = 1_000_000_000;
const RELEASED_RETENTION_MS = 1_000_000;
const ID = { scope: 'app', key: 'k' };

/** The policy of the model that made a trace. */
export interface Policy {
  readonly onOrphan: OnOrphan;
  readonly fused: boolean;
}

/**
 * Sends the commands of a trace to an empty store, and compares each reply and the record after each step with the
 * model's.
 * @throws Error that names the step, if they differ
 */
export async function replayTrace(
  store: ClaimStore,
  clock: FakeClock,
  trace: readonly string[],
  policy: Policy,
): Promise<void> {
  const run = new TraceRun(store, clock, policy);
  for (const [i, line] of trace.entries()) {
    try {
      await run.step(readStep(line));
    } catch (error) {
      const before = trace.slice(0, i + 1).join('\n');
      throw new Error(`step ${i} of the trace: ${(error as Error).message}\n${before}`, { cause: error });
    }
  }
}

class TraceRun {
  readonly #store: ClaimStore;
  readonly #clock: FakeClock;
  readonly #policy: Policy;
  #record = ABSENT;
  /** The record as the store has it. */
  #view: ClaimView | undefined;
  #lastBegin: BeginReply | undefined;
  /** The generation that each attempt has read. */
  readonly #learnt = new Map<number, number>();

  constructor(store: ClaimStore, clock: FakeClock, policy: Policy) {
    this.#store = store;
    this.#clock = clock;
    this.#policy = policy;
  }

  async step(step: Step): Promise<void> {
    if (step.type === 'learnt') {
      if (this.#lastBegin?.kind !== 'claimed') throw new Error('an attempt has read a claim that it did not get');
      this.#learnt.set(step.attempt, this.#lastBegin.generation);
      return;
    }
    if (step.type === 'event') await this.#happen(step.event);
    else await this.#command(step);
  }

  /** Compares the record with the model's. */
  async #inspect(): Promise<ClaimView | undefined> {
    this.#view = await this.#store.inspect(ID);
    assertEqual(recordOf(this.#view), expectedRecord(this.#record));
    return this.#view;
  }

  /** The lease, or the retention, ends at this millisecond. */
  async #happen(event: number): Promise<void> {
    const { leaseMs, keptMs } = this.#view as ClaimView;
    const { state, dispatched } = this.#record;
    if (event !== LEASE_OVER && state === STATES.inProgress && dispatched) await this.#lose();
    else this.#clock.advance(event === LEASE_OVER ? leaseMs : keptMs);
    this.#record = afterEvent(this.#record, event);
    await this.#inspect();
  }

  /** A marked claim does not expire. So the loss of its record is its release, and the end of that retention. */
  async #lose(): Promise<void> {
    const retention = { retentionMs: RETENTION_MS, releasedRetentionMs: 1 };
    assertEqual(await releaseByOperator(this.#store, ID, retention, true), 'released');
    this.#clock.advance(1);
  }

  async #command(step: CommandStep): Promise<void> {
    // The model's lease is a bit. A later time shows whether a command has renewed it.
    const passed = this.#record.live ? 1 : 0;
    this.#clock.advance(passed);
    const before = later(this.#view, passed);
    const reply = await this.#send(step, before);
    this.#record = step.after;
    const after = await this.#inspect();
    assertEqual(reply, this.#expectedReply(step, after));
    const { begin, extend, dispatch } = COMMANDS;
    const renews = step.reply === REPLIES.ok && ([begin, extend, dispatch] as number[]).includes(step.command);
    if (renews) assertEqual([after?.leaseMs, after?.keptMs], [LEASE_MS, RETENTION_MS]);
    if (step.reply !== REPLIES.ok) assertEqual(after, before);
  }

  async #send(step: CommandStep, before: ClaimView | undefined): Promise<unknown> {
    const common = { token: `t${step.token}`, fingerprint: `f${step.fingerprint}`, retentionMs: RETENTION_MS };
    const store = this.#store;
    switch (step.command) {
      case COMMANDS.begin: {
        const { onOrphan, fused } = this.#policy;
        const { state, owner } = this.#record;
        // The owner's second begin changes no mark, whatever it asks for.
        const dispatch = fused || (state === STATES.inProgress && owner === step.token);
        const command = { ...common, leaseMs: LEASE_MS, onOrphan, dispatch };
        if (fused) await this.#beginLate({ ...command, token: 'late' });
        this.#lastBegin = await store.begin(ID, command);
        return this.#lastBegin;
      }
      case COMMANDS.complete:
        return store.complete(ID, { ...common, result: resultOf(step.value, step.big) });
      case COMMANDS.abandon: {
        const generation = this.#generation(step, before);
        return store.abandon(ID, { ...common, releasedRetentionMs: RELEASED_RETENTION_MS, generation });
      }
      default: {
        const generation = this.#generation(step, before);
        if (generation === undefined) throw new Error('the owner sends a command without its generation');
        const command = { ...common, leaseMs: LEASE_MS, generation };
        return step.command === COMMANDS.extend ? store.extend(ID, command) : store.dispatch(ID, command);
      }
    }
  }

  /** With DEADLINE the model leaves out a begin that arrives after its deadline, because it does nothing. */
  async #beginLate(command: BeginCommand): Promise<void> {
    const deadline = this.#clock.now() - 1;
    assertEqual(await this.#store.begin(ID, { ...command, deadline }), { kind: 'late' });
  }

  /**
   * The generation that the attempt has read. The number does not survive the record, so after an expiry the model says
   * whether it fits the next record: never, or with RESTART in the worst case always.
   */
  #generation({ attempt, told }: CommandStep, before: ClaimView | undefined): number | undefined {
    const learnt = this.#learnt.get(attempt);
    const current = before?.generation;
    if (told === TOLD.never) return learnt === undefined ? undefined : (current ?? learnt);
    if (told === TOLD.outdated && learnt === current) return (learnt as number) + 1;
    return learnt;
  }

  #expectedReply(step: CommandStep, after: ClaimView | undefined): object {
    const { result, fingerprint, state } = step.after;
    const kept = resultOf(result, state === STATES.withoutBody);
    const { begin, complete, abandon } = COMMANDS;
    switch (step.reply) {
      case REPLIES.ok: {
        if (step.command === complete) return { kind: 'ok' };
        if (step.command === abandon) return { kind: 'released' };
        if (step.command !== begin) return { kind: 'ok' };
        const { inherited, dispatched } = step.after;
        const generation = after?.generation;
        return { kind: 'claimed', generation, inherited, dispatched: dispatched && !inherited };
      }
      case REPLIES.inProgress:
        return { kind: 'in_progress', remainingMs: after?.leaseMs };
      case REPLIES.mismatch:
        return { kind: 'mismatch', fingerprint: `f${fingerprint}` };
      case REPLIES.orphan:
        return { kind: 'orphan' };
      case REPLIES.settled:
      case REPLIES.settledWithoutBody:
        return { kind: step.command === complete ? 'superseded' : 'settled', result: kept };
      case REPLIES.lost:
        return { kind: 'lost' };
      default:
        throw new Error(`the model has no reply ${step.reply}`);
    }
  }
}

const REPLIES = {
  ok: 1,
  inProgress: 2,
  mismatch: 3,
  orphan: 4,
  settled: 5,
  settledWithoutBody: 6,
  lost: 7,
} as const;

const STATE_NAMES = ['absent', 'in_progress', 'completed', 'completed', 'free'];

/** A result that can be told from every other, with and without its value. */
function resultOf(number: number, big: boolean): { status: string; value: string | undefined } {
  return { status: `s${number}`, value: big ? undefined : `r${number}` };
}

/** The same record some milliseconds later, before its lease is over. */
function later(view: ClaimView | undefined, ms: number): ClaimView | undefined {
  return view === undefined || ms === 0 ? view : { ...view, leaseMs: view.leaseMs - ms, keptMs: view.keptMs - ms };
}

/** What the model and the store have in common. The model has no times. */
function recordOf(view: ClaimView | undefined): object | undefined {
  if (view === undefined) return undefined;
  const { state, owner, fingerprint, result, dispatched, inherited, leaseMs, keptMs } = view;
  const brief = keptMs <= RELEASED_RETENTION_MS;
  return { state, owner, fingerprint, result, dispatched, inherited, live: leaseMs > 0, brief };
}

function expectedRecord({ state, owner, fingerprint, result, ...marks }: ModelRecord): object | undefined {
  if (state === STATES.absent) return undefined;
  const isCompleted = state === STATES.completed || state === STATES.withoutBody;
  return {
    state: STATE_NAMES[state],
    owner: owner === 0 ? '' : `t${owner}`,
    fingerprint: `f${fingerprint}`,
    result: isCompleted ? resultOf(result, state === STATES.withoutBody) : undefined,
    ...marks,
  };
}
