import type { OnOrphan } from '../../src/core/claim.ts';

/** The record of the model after a step, in the order in which trace.h prints it. */
export interface ModelRecord {
  readonly state: number;
  readonly owner: number;
  readonly fingerprint: number;
  readonly result: number;
  readonly dispatched: boolean;
  readonly inherited: boolean;
  /** The lease is not over. */
  readonly live: boolean;
  /** It has the shorter retention of a released key. */
  readonly brief: boolean;
}

export const STATES = { absent: 0, inProgress: 1, completed: 2, withoutBody: 3, free: 4 } as const;
export const COMMANDS = { begin: 1, extend: 2, dispatch: 3, complete: 4, abandon: 5 } as const;
export const LEASE_OVER = 6;
/** Whether a sender knows the generation of the record. */
export const TOLD = { never: 0, current: 1, outdated: 2 } as const;

/** A command of one attempt, the model's reply, and the record after it. */
export interface CommandStep {
  readonly type: 'command';
  readonly attempt: number;
  readonly token: number;
  readonly fingerprint: number;
  readonly command: number;
  readonly value: number;
  /** The result is too large to store. */
  readonly big: boolean;
  readonly told: number;
  readonly reply: number;
  readonly after: ModelRecord;
}

export type Step =
  | CommandStep
  /** The attempt has read the reply to its `begin`. */
  | { readonly type: 'learnt'; readonly attempt: number }
  /** The lease of the record, or the record itself, is over. */
  | { readonly type: 'event'; readonly event: number };

/** Reads one line of a trace, as trace.h prints it. */
export function readStep(line: string): Step {
  const [type, ...texts] = line.split(' ');
  const numbers = texts.map(Number);
  const [first = 0, token = 0, fingerprint = 0, command = 0, value = 0, big, told = 0, reply = 0, , ...record] =
    numbers;
  if (type === 'L') return { type: 'learnt', attempt: first };
  if (type === 'E') return { type: 'event', event: first };
  if (type !== 'C' || numbers.length !== 17 || numbers.some(Number.isNaN)) throw new Error(`not a step: "${line}"`);
  const [state = 0, owner = 0, recordFingerprint = 0, result = 0, dispatched, inherited, live, brief] = record;
  return {
    type: 'command',
    attempt: first,
    token,
    fingerprint,
    command,
    value,
    big: big === 1,
    told,
    reply,
    after: {
      state,
      owner,
      fingerprint: recordFingerprint,
      result,
      dispatched: dispatched === 1,
      inherited: inherited === 1,
      live: live === 1,
      brief: brief === 1,
    },
  };
}

export const ABSENT: ModelRecord = {
  state: STATES.absent,
  owner: 0,
  fingerprint: 0,
  result: 0,
  dispatched: false,
  inherited: false,
  live: false,
  brief: false,
};

/** The record after an event. */
export function afterEvent(record: ModelRecord, event: number): ModelRecord {
  return event === LEASE_OVER ? { ...record, live: false } : ABSENT;
}

/** The kinds of steps in a trace, as trace.h counts them: a command or an event, on one kind of record. */
export function kindsOf(trace: readonly string[]): Set<string> {
  const kinds = new Set<string>();
  let record = ABSENT;
  for (const step of trace.map(readStep)) {
    if (step.type === 'learnt') continue;
    const { state, dispatched, inherited, live, brief } = record;
    const sender =
      step.type === 'event'
        ? [step.event]
        : [
            step.command,
            step.big,
            record.owner === step.token ? 'own' : record.owner === 0 ? 'none' : 'other',
            record.fingerprint === step.fingerprint,
            step.told,
          ];
    kinds.add([...sender, state, dispatched, inherited, live, brief].join(' '));
    record = step.type === 'event' ? afterEvent(record, step.event) : step.after;
  }
  return kinds;
}

/** Traces of the model with one policy. */
export interface TraceSet {
  /** Options of the model. */
  readonly options: readonly string[];
  readonly onOrphan: OnOrphan;
  /** `begin` also dispatches. */
  readonly fused: boolean;
  /** `search`: the shortest way to each kind of step. Otherwise the seeds of random simulations. */
  readonly from: 'search' | readonly number[];
  readonly traces: readonly (readonly string[])[];
}

/** The committed file. */
export interface TraceFile {
  /** SHA-256 of `docs/claim.pml` and `trace.h`, of which the traces are. */
  readonly model: string;
  readonly sets: readonly TraceSet[];
}
