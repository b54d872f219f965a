import type { Synchronous } from '../base/maybe-promise.ts';
import type { AbandonReply, BeginReply, ClaimCommand, CompleteReply, HeldReply, KeptResult } from '../core/claim.ts';
import type { Clock } from '../core/clock.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../core/ports.ts';

/** The rules of a claim, without any optimization, in the form of the tables in `docs/claims.md`. */
export type ClaimModel = Pick<
  Synchronous<ClaimStore>,
  'begin' | 'extend' | 'dispatch' | 'complete' | 'abandon' | 'inspect'
>;

type State = 'ABSENT' | 'FREE' | 'IN_PROGRESS' | 'COMPLETED';
type CommandName = 'begin' | 'extend' | 'dispatch' | 'complete' | 'abandon';

/** The state of one key. There is one object per key, and commands change it in place. */
interface ModelRecord {
  state: State;
  fingerprint: string;
  owner: string;
  generation: number;
  dispatched: boolean;
  inherited: boolean;
  leaseEndsAt: number;
  expiresAt: number;
  result: KeptResult | undefined;
}

/** A command with the fields of all commands. */
interface AnyCommand extends ClaimCommand {
  readonly generation?: number | undefined;
  readonly releasedRetentionMs?: number;
  readonly leaseMs?: number;
  readonly onOrphan?: string;
  readonly dispatch?: boolean;
  readonly result?: KeptResult;
}

/** A cell of the table: changes the record, and returns the reply. */
type Cell = (record: ModelRecord, command: AnyCommand, now: number) => object;

/** Writes the changes, and starts the retention again, which is never shorter than the lease. */
function write(record: ModelRecord, { retentionMs }: AnyCommand, now: number, changes: Partial<ModelRecord>): void {
  Object.assign(record, changes);
  record.expiresAt = Math.max(now + retentionMs, record.leaseEndsAt);
}

const lost: Cell = () => ({ kind: 'lost' });
const settled: Cell = ({ result }) => ({ kind: 'settled', result });

const claim: Cell = (record, command, now) => {
  write(record, command, now, {
    state: 'IN_PROGRESS',
    fingerprint: command.fingerprint,
    owner: command.token,
    generation: record.generation + 1,
    dispatched: command.dispatch === true,
    inherited: false,
    leaseEndsAt: now + (command.leaseMs as number),
    result: undefined,
  });
  return { kind: 'claimed', generation: record.generation, inherited: false, dispatched: record.dispatched };
};

const inherit: Cell = (record, command, now) => {
  write(record, command, now, {
    owner: command.token,
    generation: record.generation + 1,
    inherited: true,
    leaseEndsAt: now + (command.leaseMs as number),
  });
  return { kind: 'claimed', generation: record.generation, inherited: true, dispatched: false };
};

const beginAgain: Cell = (record, command, now) => {
  write(record, command, now, { leaseEndsAt: now + (command.leaseMs as number) });
  const { generation, inherited, dispatched } = record;
  return { kind: 'claimed', generation, inherited, dispatched: inherited ? false : dispatched };
};

const inProgress: Cell = ({ leaseEndsAt }, _, now) => ({ kind: 'in_progress', remainingMs: leaseEndsAt - now });
const orphan: Cell = () => ({ kind: 'orphan' });

/** `begin` on IN_PROGRESS: the first row of its table that applies. */
const beginOnInProgress: Cell = (record, command, now) => {
  if (record.owner === command.token) return beginAgain(record, command, now);
  if (record.leaseEndsAt > now) return inProgress(record, command, now);
  if (!record.dispatched) return claim(record, command, now);
  return command.onOrphan === 'reject' ? orphan(record, command, now) : inherit(record, command, now);
};

const ifOwner =
  (cell: Cell): Cell =>
  (record, command, now) => {
    const isOwner = record.owner === command.token && [record.generation, undefined].includes(command.generation);
    return isOwner ? cell(record, command, now) : lost(record, command, now);
  };

const renew: Cell = (record, command, now) => {
  write(record, command, now, { leaseEndsAt: now + (command.leaseMs as number) });
  return { kind: 'ok' };
};

const markDispatched: Cell = (record, command, now) => {
  record.dispatched = true;
  record.inherited = false;
  return renew(record, command, now);
};

const finish: Cell = (record, command, now) => {
  const { token: owner, fingerprint, result } = command;
  const changes = {
    state: 'COMPLETED',
    fingerprint,
    owner,
    result,
    dispatched: false,
    inherited: false,
    leaseEndsAt: now,
  } as const;
  write(record, command, now, changes);
  return { kind: 'ok' };
};

const firstWins: Cell = ({ owner, result }, { token }) =>
  owner === token ? { kind: 'ok' } : { kind: 'superseded', result };

const release: Cell = (record, command, now) => {
  write(record, command, now, { owner: '', leaseEndsAt: now });
  if (record.inherited) return { kind: 'released' };
  record.state = 'FREE';
  record.dispatched = false;
  const shorterMs = command.releasedRetentionMs as number;
  if (shorterMs < command.retentionMs) record.expiresAt = now + shorterMs;
  return { kind: 'released' };
};

function isMarked({ state, dispatched }: ModelRecord): boolean {
  return state === 'IN_PROGRESS' && dispatched;
}

const TABLE: Readonly<Record<CommandName, Readonly<Record<State, Cell>>>> = {
  begin: { ABSENT: claim, FREE: claim, IN_PROGRESS: beginOnInProgress, COMPLETED: settled },
  extend: { ABSENT: lost, FREE: lost, IN_PROGRESS: ifOwner(renew), COMPLETED: settled },
  dispatch: { ABSENT: lost, FREE: lost, IN_PROGRESS: ifOwner(markDispatched), COMPLETED: settled },
  complete: { ABSENT: finish, FREE: finish, IN_PROGRESS: finish, COMPLETED: firstWins },
  abandon: { ABSENT: lost, FREE: lost, IN_PROGRESS: ifOwner(release), COMPLETED: settled },
};

/**
 * Creates the model against which claim stores are tested. It shares nothing with `core/claim.ts`, so a mistake there
 * cannot be repeated here.
 */
export function createClaimModel(clock: Clock): ClaimModel {
  const records = new Map<string, ModelRecord>();

  function recordAt({ scope, key }: ClaimId): ModelRecord {
    const name = JSON.stringify([scope, key]);
    const known = records.get(name);
    // A marked claim without an outcome stays until it is resolved.
    if (known !== undefined && (known.expiresAt > clock.now() || isMarked(known))) return known;
    const blank: ModelRecord = {
      state: 'ABSENT',
      fingerprint: '',
      owner: '',
      generation: 0,
      dispatched: false,
      inherited: false,
      leaseEndsAt: 0,
      expiresAt: Number.POSITIVE_INFINITY,
      result: undefined,
    };
    records.set(name, blank);
    return blank;
  }

  function run(name: CommandName, id: ClaimId, command: AnyCommand): unknown {
    const record = recordAt(id);
    if (record.state !== 'ABSENT' && record.fingerprint !== command.fingerprint) {
      return name === 'begin' ? { kind: 'mismatch', fingerprint: record.fingerprint } : { kind: 'lost' };
    }
    return TABLE[name][record.state](record, command, clock.now());
  }

  return {
    begin(id, command) {
      if (command.deadline !== undefined && clock.now() > command.deadline) return { kind: 'late' };
      return run('begin', id, command) as BeginReply;
    },
    extend: (id, command) => run('extend', id, command) as HeldReply,
    dispatch: (id, command) => run('dispatch', id, command) as HeldReply,
    complete: (id, command) => run('complete', id, command) as CompleteReply,
    abandon: (id, command) => run('abandon', id, command) as AbandonReply,
    inspect(id) {
      const { state, fingerprint, owner, generation, dispatched, inherited, leaseEndsAt, expiresAt, result } =
        recordAt(id);
      if (state === 'ABSENT') return undefined;
      return {
        state: state.toLowerCase() as ClaimView['state'],
        fingerprint,
        owner,
        generation,
        dispatched,
        inherited,
        result,
        leaseMs: state === 'IN_PROGRESS' ? Math.max(0, leaseEndsAt - clock.now()) : 0,
        keptMs: Math.max(0, expiresAt - clock.now()),
      };
    },
  };
}
