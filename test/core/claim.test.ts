import { describe, expect, it } from 'vitest';
import {
  abandon,
  type BeginCommand,
  begin,
  type ClaimRecord,
  complete,
  dispatch,
  extend,
  type KeptResult,
  unexpired,
} from '../../src/core/claim.ts';
import { runningClaim } from '../support/claim-record.ts';

const NOW = 10_000;
const LEASE = 1_000;
const RETENTION = 50_000;
const RELEASED = 7_000;
const RESULT: KeptResult = { status: '200', value: 'sent' };
const OTHER: KeptResult = { status: '500', value: 'failed' };

const command = { token: 'a', fingerprint: 'f', retentionMs: RETENTION };
const beginning: BeginCommand = { ...command, leaseMs: LEASE, onOrphan: 'reject', dispatch: false };
const held = { ...command, leaseMs: LEASE, generation: 3 };
const completing = { ...command, result: RESULT };
const abandoning = { ...command, releasedRetentionMs: RELEASED, generation: 3 };

const running = runningClaim(NOW);
const lapsed: ClaimRecord = { ...running, leaseUntil: NOW };
const orphan: ClaimRecord = { ...lapsed, dispatched: true };
const heir: ClaimRecord = { ...running, dispatched: true, inherited: true };
const free: ClaimRecord = { ...lapsed, state: 'free', owner: '' };
const completed: ClaimRecord = { ...lapsed, state: 'completed', result: RESULT };
const renewed = { leaseUntil: NOW + LEASE, keptUntil: NOW + RETENTION };

const LOST = { kind: 'lost' };
const SETTLED = { kind: 'settled', result: RESULT };

describe('begin', () => {
  const claimed = (generation: number, over: object = {}) => ({
    record: { ...running, owner: 'b', generation, ...renewed, ...over },
    reply: { kind: 'claimed', generation, inherited: false, dispatched: false },
  });
  const by = { ...beginning, token: 'b' };

  it('ABSENT: claims', () => expect(begin(undefined, by, NOW)).toEqual(claimed(1)));

  it('FREE: claims, and increases the generation', () => expect(begin(free, by, NOW)).toEqual(claimed(4)));

  it('FREE: claims, even if the clock has stepped back to before the release', () => {
    expect(begin({ ...free, leaseUntil: NOW + 400 }, by, NOW)).toEqual(claimed(4));
  });

  it('COMPLETED: settled, with or without a value, and nothing changes', () => {
    const tooLarge = { ...completed, result: { status: '200', value: undefined } };
    for (const record of [completed, tooLarge]) {
      const step = begin(record, by, NOW);
      expect(step.record).toBe(record);
      expect(step.reply).toEqual({ kind: 'settled', result: record.result });
    }
  });

  it.each([
    ['FREE', free],
    ['IN_PROGRESS', running],
    ['IN_PROGRESS, lease expired', lapsed],
    ['IN_PROGRESS, orphan', orphan],
    ['COMPLETED', completed],
  ])('I2: %s with another fingerprint: mismatch', (_, record) => {
    const step = begin(record, { ...by, fingerprint: 'g', onOrphan: 'reexecute' }, NOW);
    expect(step.record).toBe(record);
    expect(step.reply).toEqual({ kind: 'mismatch', fingerprint: 'f' });
  });

  it.each([
    ['not dispatched', running, false, false],
    ['dispatched', { ...running, dispatched: true }, false, true],
    ['inherited', heir, true, false],
    ['lease expired', lapsed, false, false],
    ['dispatched, lease expired', orphan, false, true],
  ])(
    'IN_PROGRESS, owner = token, %s: renewed, and the dispatch does not change',
    (_, record, inherited, dispatched) => {
      for (const marks of [false, true]) {
        const step = begin(record, { ...beginning, dispatch: marks }, NOW);
        expect(step.record).toEqual({ ...record, ...renewed });
        expect(step.reply).toEqual({ kind: 'claimed', generation: 3, inherited, dispatched });
      }
    },
  );

  it.each([running, { ...running, dispatched: true }, heir])('IN_PROGRESS, lease active: in progress', (record) => {
    for (const onOrphan of ['reject', 'reexecute', 'reconcile'] as const) {
      const step = begin(record, { ...by, onOrphan }, NOW);
      expect(step.record).toBe(record);
      expect(step.reply).toEqual({ kind: 'in_progress', remainingMs: 400 });
    }
  });

  it('IN_PROGRESS, lease expired, not dispatched: claims', () => {
    expect(begin(lapsed, by, NOW)).toEqual(claimed(4));
    expect(begin(lapsed, by, NOW - 1).reply).toEqual({ kind: 'in_progress', remainingMs: 1 });
  });

  it('IN_PROGRESS, lease expired, dispatched, reject: orphan', () => {
    const step = begin(orphan, by, NOW);
    expect(step.record).toBe(orphan);
    expect(step.reply).toEqual({ kind: 'orphan' });
  });

  it.each(['reexecute', 'reconcile'] as const)(
    'IN_PROGRESS, lease expired, dispatched, %s: takes over, and inherits the dispatch',
    (onOrphan) => {
      for (const marks of [false, true]) {
        expect(begin(orphan, { ...by, onOrphan, dispatch: marks }, NOW)).toEqual({
          record: { ...orphan, owner: 'b', generation: 4, inherited: true, ...renewed },
          reply: { kind: 'claimed', generation: 4, inherited: true, dispatched: false },
        });
      }
    },
  );

  it('with `dispatch`: claims and dispatches', () => {
    for (const record of [undefined, free, lapsed]) {
      const step = begin(record, { ...by, dispatch: true }, NOW);
      expect(step.record).toMatchObject({ dispatched: true, inherited: false });
      expect(step.reply).toMatchObject({ kind: 'claimed', inherited: false, dispatched: true });
    }
  });

  it('after its deadline: late, whatever the record is', () => {
    for (const record of [undefined, free, running, lapsed, orphan, completed]) {
      const step = begin(record, { ...beginning, deadline: NOW - 1 }, NOW);
      expect(step.record).toBe(record);
      expect(step.reply).toEqual({ kind: 'late' });
      expect(begin(record, { ...beginning, deadline: NOW }, NOW).reply.kind).not.toBe('late');
    }
  });

  it('I8: the record never expires before its lease', () => {
    const step = begin(undefined, { ...beginning, leaseMs: 70, retentionMs: 7 }, NOW);
    expect(step.record).toMatchObject({ leaseUntil: NOW + 70, keptUntil: NOW + 70 });
  });
});

describe.each([
  ['extend', extend],
  ['dispatch', dispatch],
] as const)('%s', (name, step) => {
  const marks = name === 'dispatch' ? { dispatched: true, inherited: false } : {};

  it.each([
    ['lease active', running],
    ['lease expired', lapsed],
    ['dispatched', orphan],
    ['inherited', heir],
  ])('IN_PROGRESS, own claim, %s: ok', (_, record) => {
    expect(step(record, held, NOW)).toEqual({ record: { ...record, ...marks, ...renewed }, reply: { kind: 'ok' } });
  });

  it.each([
    ['ABSENT', undefined, {}],
    ['FREE', free, {}],
    ['FREE, without an owner', free, { token: '' }],
    ['IN_PROGRESS, another token', running, { token: 'b' }],
    ['IN_PROGRESS, an earlier generation', running, { generation: 2 }],
    ['IN_PROGRESS, another fingerprint', running, { fingerprint: 'g' }],
    ['FREE, another fingerprint', free, { fingerprint: 'g' }],
    ['COMPLETED, another fingerprint', completed, { fingerprint: 'g' }],
  ])('%s: lost', (_, record, changes) => {
    const { record: left, reply } = step(record, { ...held, ...changes }, NOW);
    expect(left).toBe(record);
    expect(reply).toEqual(LOST);
  });

  it('COMPLETED: settled', () => {
    const { record, reply } = step(completed, { ...held, token: 'b' }, NOW);
    expect(record).toBe(completed);
    expect(reply).toEqual(SETTLED);
  });

  it('I8: the record never expires before its lease', () => {
    expect(step(running, { ...held, leaseMs: 70, retentionMs: 7 }, NOW).record).toMatchObject({ keptUntil: NOW + 70 });
  });
});

describe('complete', () => {
  const outcome = (generation: number, owner = 'a') => ({
    record: { ...completed, owner, generation, keptUntil: NOW + RETENTION },
    reply: { kind: 'ok' },
  });

  it('ABSENT: stored', () => expect(complete(undefined, completing, NOW)).toEqual(outcome(0)));
  it('FREE: stored', () => expect(complete(free, completing, NOW)).toEqual(outcome(3)));

  it.each([
    ['lease active', running],
    ['lease expired', lapsed],
    ['dispatched', orphan],
    ['inherited', heir],
  ])('IN_PROGRESS, %s: stored, even if the sender does not own it', (_, record) => {
    expect(complete(record, completing, NOW)).toEqual(outcome(3));
    expect(complete(record, { ...completing, token: 'b' }, NOW)).toEqual(outcome(3, 'b'));
  });

  it('COMPLETED by this token: ok, and the first outcome does not change', () => {
    const step = complete(completed, { ...completing, result: OTHER }, NOW);
    expect(step.record).toBe(completed);
    expect(step.reply).toEqual({ kind: 'ok' });
  });

  it('I10: COMPLETED by another token: superseded, with its result', () => {
    const step = complete(completed, { ...completing, token: 'b', result: OTHER }, NOW);
    expect(step.record).toBe(completed);
    expect(step.reply).toEqual({ kind: 'superseded', result: RESULT });
  });

  it.each([free, running, orphan, completed])('I2: another fingerprint: lost', (record) => {
    const step = complete(record, { ...completing, fingerprint: 'g' }, NOW);
    expect(step.record).toBe(record);
    expect(step.reply).toEqual(LOST);
  });
});

describe('abandon', () => {
  it.each([
    ['lease active', running],
    ['lease expired', lapsed],
    ['dispatched', orphan],
  ])('IN_PROGRESS, own claim, %s: FREE, and the fingerprint does not change (I6)', (_, record) => {
    for (const generation of [3, undefined]) {
      expect(abandon(record, { ...abandoning, generation }, NOW)).toEqual({
        record: { ...free, keptUntil: NOW + RELEASED },
        reply: { kind: 'released' },
      });
    }
  });

  it('I6: a released claim is never stored longer than the retention', () => {
    const { record } = abandon(running, { ...abandoning, retentionMs: RELEASED - 1 }, NOW);
    expect(record).toEqual({ ...free, keptUntil: NOW + RELEASED - 1 });
  });

  it('I9: IN_PROGRESS, own claim, inherited: an orphan again', () => {
    const step = abandon(heir, abandoning, NOW);
    expect(step.record).toEqual({ ...heir, owner: '', leaseUntil: NOW, keptUntil: NOW + RETENTION });
    expect(step.reply).toEqual({ kind: 'released' });
    expect(begin(step.record, { ...beginning, token: 'b' }, NOW).reply).toEqual({ kind: 'orphan' });
  });

  it.each([
    ['ABSENT', undefined, {}],
    ['FREE', free, {}],
    ['IN_PROGRESS, another token', running, { token: 'b' }],
    ['IN_PROGRESS, of another token, generation unknown', running, { token: 'b', generation: undefined }],
    ['IN_PROGRESS, an earlier generation', running, { generation: 2 }],
    ['IN_PROGRESS, another fingerprint', running, { fingerprint: 'g' }],
    ['COMPLETED, another fingerprint', completed, { fingerprint: 'g' }],
  ])('%s: lost', (_, record, changes) => {
    const { record: left, reply } = abandon(record, { ...abandoning, ...changes }, NOW);
    expect(left).toBe(record);
    expect(reply).toEqual(LOST);
  });

  it('COMPLETED: settled', () => {
    const { record, reply } = abandon(completed, abandoning, NOW);
    expect(record).toBe(completed);
    expect(reply).toEqual(SETTLED);
  });
});

describe('retention', () => {
  it('I8: a record expires when its retention is over, to the millisecond', () => {
    const { keptUntil } = completed;
    expect(unexpired(completed, keptUntil - 1)).toBe(completed);
    expect(unexpired(completed, keptUntil)).toBeUndefined();
    expect(unexpired(undefined, 0)).toBeUndefined();
  });

  it('an expired record counts as absent, for every command', () => {
    const at = completed.keptUntil;
    expect(begin(completed, { ...beginning, fingerprint: 'g' }, at).reply).toMatchObject({
      kind: 'claimed',
      generation: 1,
    });
    expect(extend(running, held, at)).toEqual({ record: undefined, reply: LOST });
    expect(dispatch(running, held, at)).toEqual({ record: undefined, reply: LOST });
    expect(complete(completed, { ...completing, fingerprint: 'g' }, at).record).toMatchObject({ fingerprint: 'g' });
    expect(abandon(running, abandoning, at)).toEqual({ record: undefined, reply: LOST });
  });
});
