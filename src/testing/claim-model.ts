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
  KeptResult,
} from '../core/claim.ts';
import type { Clock } from '../core/clock.ts';
import type { ClaimId, ClaimView } from '../core/ports.ts';

/** The rules of a claim without a single optimization, told as the table of `docs/claims.md` tells them. */
export interface ClaimModel {
  /** What `begin` of a `ClaimStore` must say. */
  begin(id: ClaimId, command: BeginCommand): BeginReply;
  /** What `extend` of a `ClaimStore` must say. */
  extend(id: ClaimId, command: HeldCommand): HeldReply;
  /** What `dispatch` of a `ClaimStore` must say. */
  dispatch(id: ClaimId, command: HeldCommand): HeldReply;
  /** What `complete` of a `ClaimStore` must say. */
  complete(id: ClaimId, command: CompleteCommand): CompleteReply;
  /** What `abandon` of a `ClaimStore` must say. */
  abandon(id: ClaimId, command: AbandonCommand): AbandonReply;
  /** What `inspect` of a `ClaimStore` must say. */
  inspect(id: ClaimId): ClaimView | undefined;
}

type Column = 'ABSENT' | 'FREE' | 'IN_PROGRESS' | 'COMPLETED';
type Line = 'begin' | 'extend' | 'dispatch' | 'complete' | 'abandon';

/** What stands under a key. One object a key, written over in its place. */
interface Sheet {
  column: Column;
  print: string;
  owner: string;
  generation: number;
  mark: boolean;
  inherited: boolean;
  leaseEnds: number;
  forgottenAt: number;
  result: KeptResult | undefined;
}

/** A command with everything that any of them says. */
interface Message extends ClaimCommand {
  readonly generation?: number | undefined;
  readonly leaseMs?: number;
  readonly onOrphan?: string;
  readonly dispatch?: boolean;
  readonly result?: KeptResult;
}

type Cell = (sheet: Sheet, message: Message, now: number) => object;

/** Writes the changes, and renews the retention, which is never shorter than the lease. */
function write(sheet: Sheet, { retentionMs }: Message, now: number, changes: Partial<Sheet>): void {
  Object.assign(sheet, changes);
  sheet.forgottenAt = Math.max(now + retentionMs, sheet.leaseEnds);
}

const lost: Cell = () => ({ kind: 'lost' });
const settled: Cell = ({ result }) => ({ kind: 'settled', result });

const claim: Cell = (sheet, message, now) => {
  write(sheet, message, now, {
    column: 'IN_PROGRESS',
    print: message.fingerprint,
    owner: message.token,
    generation: sheet.generation + 1,
    mark: message.dispatch === true,
    inherited: false,
    leaseEnds: now + (message.leaseMs as number),
    result: undefined,
  });
  return { kind: 'claimed', generation: sheet.generation, inherited: false, dispatched: sheet.mark };
};

const inherit: Cell = (sheet, message, now) => {
  write(sheet, message, now, {
    owner: message.token,
    generation: sheet.generation + 1,
    inherited: true,
    leaseEnds: now + (message.leaseMs as number),
  });
  return { kind: 'claimed', generation: sheet.generation, inherited: true, dispatched: false };
};

const beginAgain: Cell = (sheet, message, now) => {
  write(sheet, message, now, { leaseEnds: now + (message.leaseMs as number) });
  const { generation, inherited, mark } = sheet;
  return { kind: 'claimed', generation, inherited, dispatched: inherited ? false : mark };
};

const inProgress: Cell = ({ leaseEnds }, _, now) => ({ kind: 'in_progress', remainingMs: leaseEnds - now });
const orphan: Cell = () => ({ kind: 'orphan' });

/** `begin` on IN_PROGRESS: the first row that fits. */
const BEGIN_ON_IN_PROGRESS: readonly (readonly [(sheet: Sheet, message: Message, now: number) => boolean, Cell])[] = [
  [({ owner }, { token }) => owner === token, beginAgain],
  [({ leaseEnds }, _, now) => leaseEnds > now, inProgress],
  [({ mark }) => !mark, claim],
  [(_, { onOrphan }) => onOrphan === 'reject', orphan],
  [() => true, inherit],
];

const beginOnInProgress: Cell = (sheet, message, now) => {
  for (const [fits, cell] of BEGIN_ON_IN_PROGRESS) if (fits(sheet, message, now)) return cell(sheet, message, now);
  throw new Error('the last row always fits');
};

const ifMine =
  (cell: Cell): Cell =>
  (sheet, message, now) => {
    const mine = sheet.owner === message.token && [sheet.generation, undefined].includes(message.generation);
    return mine ? cell(sheet, message, now) : lost(sheet, message, now);
  };

const renew: Cell = (sheet, message, now) => {
  write(sheet, message, now, { leaseEnds: now + (message.leaseMs as number) });
  return { kind: 'ok' };
};

const mark: Cell = (sheet, message, now) => {
  sheet.mark = true;
  sheet.inherited = false;
  return renew(sheet, message, now);
};

const finish: Cell = (sheet, message, now) => {
  const { token: owner, fingerprint: print, result } = message;
  const changes = { column: 'COMPLETED', print, owner, result, mark: false, inherited: false, leaseEnds: now } as const;
  write(sheet, message, now, changes);
  return { kind: 'ok' };
};

const firstWins: Cell = ({ owner, result }, { token }) =>
  owner === token ? { kind: 'ok' } : { kind: 'superseded', result };

const release: Cell = (sheet, message, now) => {
  const changes: Partial<Sheet> = sheet.inherited ? {} : { column: 'FREE', mark: false };
  write(sheet, message, now, { ...changes, owner: '', leaseEnds: now });
  return { kind: 'released' };
};

const TABLE: Readonly<Record<Line, Readonly<Record<Column, Cell>>>> = {
  begin: { ABSENT: claim, FREE: claim, IN_PROGRESS: beginOnInProgress, COMPLETED: settled },
  extend: { ABSENT: lost, FREE: lost, IN_PROGRESS: ifMine(renew), COMPLETED: settled },
  dispatch: { ABSENT: lost, FREE: lost, IN_PROGRESS: ifMine(mark), COMPLETED: settled },
  complete: { ABSENT: finish, FREE: finish, IN_PROGRESS: finish, COMPLETED: firstWins },
  abandon: { ABSENT: lost, FREE: lost, IN_PROGRESS: ifMine(release), COMPLETED: settled },
};

/** The oracle that claim stores are tested against; it shares nothing with `core/claim.ts`, so a mistake there cannot repeat itself here. */
export function createClaimModel(clock: Clock): ClaimModel {
  const sheets = new Map<string, Sheet>();

  function sheetOf({ scope, key }: ClaimId): Sheet {
    const name = JSON.stringify([scope, key]);
    const known = sheets.get(name);
    if (known !== undefined && known.forgottenAt > clock.now()) return known;
    const blank: Sheet = {
      column: 'ABSENT',
      print: '',
      owner: '',
      generation: 0,
      mark: false,
      inherited: false,
      leaseEnds: 0,
      forgottenAt: Number.POSITIVE_INFINITY,
      result: undefined,
    };
    sheets.set(name, blank);
    return blank;
  }

  function look(line: Line, id: ClaimId, message: Message): unknown {
    const sheet = sheetOf(id);
    if (sheet.column !== 'ABSENT' && sheet.print !== message.fingerprint) {
      return line === 'begin' ? { kind: 'mismatch', fingerprint: sheet.print } : { kind: 'lost' };
    }
    return TABLE[line][sheet.column](sheet, message, clock.now());
  }

  return {
    begin(id, command) {
      if (command.deadline !== undefined && clock.now() > command.deadline) return { kind: 'late' };
      return look('begin', id, command) as BeginReply;
    },
    extend: (id, command) => look('extend', id, command) as HeldReply,
    dispatch: (id, command) => look('dispatch', id, command) as HeldReply,
    complete: (id, command) => look('complete', id, command) as CompleteReply,
    abandon: (id, command) => look('abandon', id, command) as AbandonReply,
    inspect(id) {
      const { column, print, owner, generation, mark, inherited, leaseEnds, forgottenAt, result } = sheetOf(id);
      if (column === 'ABSENT') return undefined;
      return {
        state: column.toLowerCase() as ClaimView['state'],
        fingerprint: print,
        owner,
        generation,
        dispatched: mark,
        inherited,
        result,
        leaseMs: column === 'IN_PROGRESS' ? Math.max(0, leaseEnds - clock.now()) : 0,
        keptMs: forgottenAt - clock.now(),
      };
    },
  };
}
