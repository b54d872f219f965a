import {
  type AbandonCommand,
  abandon,
  type BeginCommand,
  begin,
  type ClaimRecord,
  type ClaimStep,
  type CompleteCommand,
  complete,
  dispatch,
  extend,
  type HeldCommand,
  unexpired,
} from '../../src/core/claim.ts';
import type { Clock } from '../../src/core/clock.ts';
import type { ClaimId, ClaimStore } from '../../src/core/ports.ts';

type AnyStep = ClaimStep<{ readonly kind: string }>;

/** The state before one command, and the step of a correct store. */
export interface Situation {
  readonly record: ClaimRecord | undefined;
  readonly now: number;
  readonly right: AnyStep;
}

/** The steps of a wrong store; undefined if its step is correct by chance. */
export interface Fault {
  begin?(situation: Situation, command: BeginCommand): AnyStep | undefined;
  extend?(situation: Situation, command: HeldCommand): AnyStep | undefined;
  dispatch?(situation: Situation, command: HeldCommand): AnyStep | undefined;
  complete?(situation: Situation, command: CompleteCommand): AnyStep | undefined;
  abandon?(situation: Situation, command: AbandonCommand): AnyStep | undefined;
  /** The record as the wrong store reads it. */
  read?(record: ClaimRecord, now: number): ClaimRecord | undefined;
}

/** A store that is a map with a fault. Without a fault, the store is correct. */
export function createWrongClaimStore(clock: Clock, fault: Fault = {}): ClaimStore {
  const records = new Map<string, ClaimRecord>();
  const nameOf = ({ scope, key }: ClaimId): string => JSON.stringify([scope, key]);
  const find = (id: ClaimId): ClaimRecord | undefined => {
    const record = unexpired(records.get(nameOf(id)), clock.now());
    return record !== undefined && fault.read !== undefined ? fault.read(record, clock.now()) : record;
  };
  function withFault<Command, Reply>(
    right: (record: ClaimRecord | undefined, command: Command, now: number) => AnyStep,
    wrong: ((situation: Situation, command: Command) => AnyStep | undefined) | undefined,
  ) {
    return (id: ClaimId, command: Command): Reply => {
      const record = find(id);
      const now = clock.now();
      const step = right(record, command, now);
      const chosen = wrong?.({ record, now, right: step }, command) ?? step;
      if (chosen.record === undefined) records.delete(nameOf(id));
      else records.set(nameOf(id), chosen.record);
      return chosen.reply as Reply;
    };
  }
  return {
    synchronous: true,
    begin: withFault(begin, fault.begin),
    extend: withFault(extend, fault.extend),
    dispatch: withFault(dispatch, fault.dispatch),
    complete: withFault(complete, fault.complete),
    abandon: withFault(abandon, fault.abandon),
    inspect(id) {
      const record = find(id);
      if (record === undefined) return undefined;
      const { leaseUntil, keptUntil, ...rest } = record;
      const leaseMs = record.state === 'in_progress' ? Math.max(0, leaseUntil - clock.now()) : 0;
      return { ...rest, leaseMs, keptMs: Math.max(0, keptUntil - clock.now()) };
    },
  };
}

const OK = { kind: 'ok' };
const LOST = { kind: 'lost' };

function change(step: AnyStep, changes: Partial<ClaimRecord>): AnyStep {
  return step.record === undefined ? step : { ...step, record: { ...step.record, ...changes } };
}

/** A takeover, whether it is allowed or not. */
function takeOver(
  { record, now }: Situation,
  command: BeginCommand,
  marked = command.dispatch,
  inherited = false,
): AnyStep {
  const generation = (record?.generation ?? 0) + 1;
  const fresh = begin(undefined, { ...command, deadline: undefined }, now);
  return {
    record: { ...(fresh.record as ClaimRecord), generation, dispatched: marked, inherited },
    reply: { kind: 'claimed', generation, inherited, dispatched: marked && !inherited } as { kind: string },
  };
}

const settled = ({ result }: ClaimRecord) => ({ kind: 'settled', result });
const isOpen = (record: ClaimRecord | undefined): record is ClaimRecord => record?.state === 'in_progress';

/** The wrong variants of the protocol that a store could implement, by their names in `docs/claim.pml`. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  W_NO_MARK: {
    dispatch: ({ record, right }) =>
      right.reply.kind === 'ok' ? change(right, { dispatched: record?.dispatched ?? false }) : undefined,
  },
  W_LEASE_IS_TTL: {
    read: (record, now) => (isOpen(record) && record.owner !== '' && now >= record.leaseUntil ? undefined : record),
  },
  W_TAKEOVER_OF_DISPATCHED: {
    begin: (situation, command) =>
      situation.right.reply.kind === 'orphan' ? takeOver(situation, command, true, true) : undefined,
  },
  W_UNKNOWN_EXPIRES: {
    read: (record, now) => (now >= record.keptUntil ? undefined : record),
  },
  W_ABANDON_WITHOUT_OWNER: {
    abandon: ({ record, now }, command) =>
      isOpen(record) && record.fingerprint === command.fingerprint
        ? abandon(record, { ...command, token: record.owner, generation: undefined }, now)
        : undefined,
  },
  W_TOO_LARGE_IS_RELEASED: {
    complete: ({ right }, { result }) =>
      right.reply.kind === 'ok' && result.value === undefined
        ? change(right, { state: 'free', owner: '', result: undefined })
        : undefined,
  },
  W_DISPATCH_WITHOUT_CAS: {
    dispatch: ({ record, right }, { fingerprint }) =>
      isOpen(record) && record.fingerprint === fingerprint && right.reply.kind === 'lost'
        ? { record: { ...record, dispatched: true }, reply: OK }
        : undefined,
  },
  W_EXTEND_REVIVES: {
    extend: ({ record, now }, { token, fingerprint, leaseMs, retentionMs }) =>
      isOpen(record) && record.fingerprint === fingerprint
        ? {
            record: {
              ...record,
              owner: token,
              leaseUntil: now + leaseMs,
              keptUntil: now + Math.max(leaseMs, retentionMs),
            },
            reply: OK,
          }
        : undefined,
  },
  W_BEGIN_CLEARS_MARK: {
    begin: ({ record, right }, { token, dispatch: marks }) =>
      isOpen(record) && record.owner === token && right.reply.kind === 'claimed'
        ? change(right, { dispatched: marks || record.inherited })
        : undefined,
  },
  W_BEGIN_SETS_MARK: {
    begin: ({ record, right }, { token, dispatch: marks }) =>
      isOpen(record) && record.owner === token && right.reply.kind === 'claimed' && marks
        ? change(right, { dispatched: true })
        : undefined,
  },
  W_NO_GENERATION: {
    extend: ({ record, now }, command) =>
      isOpen(record) ? extend(record, { ...command, generation: record.generation }, now) : undefined,
    dispatch: ({ record, now }, command) =>
      isOpen(record) ? dispatch(record, { ...command, generation: record.generation }, now) : undefined,
    abandon: ({ record, now }, command) => abandon(record, { ...command, generation: undefined }, now),
  },
  W_BEGIN_NOT_IDEMPOTENT: {
    begin: ({ record, now, right }, { token }) =>
      isOpen(record) && record.owner === token && now < record.leaseUntil && right.reply.kind === 'claimed'
        ? { record, reply: { kind: 'in_progress', remainingMs: record.leaseUntil - now } as { kind: string } }
        : undefined,
  },
  W_NO_LEASE: {
    begin: ({ record, right }, { token }) =>
      isOpen(record) && record.owner !== '' && record.owner !== token && right.reply.kind === 'claimed'
        ? { record, reply: { kind: 'in_progress', remainingMs: 1 } as { kind: string } }
        : undefined,
  },
  W_COMPLETE_NEEDS_LEASE: {
    complete: ({ record, now }) => (isOpen(record) && now >= record.leaseUntil ? { record, reply: LOST } : undefined),
  },
  W_COMPLETE_NEEDS_OWNER: {
    complete: ({ record }, { token }) =>
      isOpen(record) && record.owner !== token ? { record, reply: LOST } : undefined,
  },
  'FUSED without DEADLINE': {
    begin: ({ record, now, right }, command) =>
      right.reply.kind === 'late' ? begin(record, { ...command, deadline: undefined }, now) : undefined,
  },
  W_COMPLETE_OVERWRITES: {
    complete: ({ record, now }, command) =>
      record?.fingerprint === command.fingerprint
        ? complete({ ...record, state: 'in_progress' }, command, now)
        : undefined,
  },
  W_COMPLETED_SKIPS_FINGERPRINT: {
    begin: ({ record, right }) =>
      record?.state === 'completed' && right.reply.kind === 'mismatch' ? { record, reply: settled(record) } : undefined,
  },
  W_FREE_FORGETS_FINGERPRINT: {
    begin: (situation, command) =>
      situation.record?.state === 'free' && situation.right.reply.kind === 'mismatch'
        ? takeOver(situation, command)
        : undefined,
  },
  W_CLAIM_EXPIRES_AS_FREE: {
    begin: ({ record, right }) =>
      record?.state === 'free' && right.reply.kind === 'claimed'
        ? change(right, { keptUntil: Math.max(record.keptUntil, right.record?.leaseUntil ?? 0) })
        : undefined,
  },
  W_COMPLETE_WITHOUT_FINGERPRINT: {
    complete: ({ record, now }, command) =>
      record === undefined ? undefined : complete({ ...record, fingerprint: command.fingerprint }, command, now),
  },
  W_COMPLETE_NEEDS_RECORD: {
    complete: ({ record }) => (record === undefined ? { record, reply: LOST } : undefined),
  },
  W_TAKEOVER_CLEARS_MARK: {
    begin: ({ record, right }, { token }) =>
      right.record?.inherited && record?.owner !== token && right.reply.kind === 'claimed'
        ? change(right, { dispatched: false })
        : undefined,
  },
  W_ABANDON_FREES_INHERITED: {
    abandon: ({ record, right }) =>
      record?.inherited && right.reply.kind === 'released'
        ? change(right, { state: 'free', dispatched: false, inherited: false })
        : undefined,
  },
  W_ORPHAN_EXPIRES_AS_FREE: {
    read: (record, now) => (isOpen(record) && record.owner === '' && now >= record.keptUntil ? undefined : record),
    abandon: ({ record, now, right }, { releasedRetentionMs, retentionMs }) =>
      record?.inherited && right.reply.kind === 'released'
        ? change(right, { keptUntil: now + Math.min(releasedRetentionMs, retentionMs) })
        : undefined,
  },
  RECREATE: {
    extend: ({ record, now }, { token, fingerprint, leaseMs, retentionMs }) =>
      record === undefined
        ? {
            record: begin(
              undefined,
              { token, fingerprint, leaseMs, retentionMs, onOrphan: 'reject', dispatch: false },
              now,
            ).record,
            reply: OK,
          }
        : undefined,
  },
};
