import { describe, expect, it } from 'vitest';
import {
  type Adjustment,
  type AdjustmentEntry,
  applyEntry,
  isSameHead,
  layerOf,
  MAX_RECENT,
  targetKey,
  withEntry,
} from '../../src/core/adjustment.ts';
import { parseLimit } from '../../src/core/limit.ts';
import { reconcile } from '../../src/shared-limits/lineage.ts';

const entryOf = (version: number, nonce = `n${version}`): AdjustmentEntry => {
  return { version, nonce, at: 5, by: 'jane', reason: 'INC-12', source: 'change', limits: [] };
};
const stateOf = (...recent: AdjustmentEntry[]) => {
  const { version, nonce } = recent.at(-1) as AdjustmentEntry;
  return { head: { version, nonce }, adjustments: [], recent };
};

describe('the target of an adjustment', () => {
  it('is one layer, or the default one', () => {
    expect(layerOf({})).toEqual({ layer: 'default', name: '' });
    expect(layerOf({ account: 'a', provider: undefined })).toEqual({ layer: 'account', name: 'a' });
    expect(layerOf({ plan: 'pro', route: 'r' })).toEqual({ layer: 'plan', name: 'pro' });
    expect(() => layerOf({ account: 'a', plan: 'pro' })).toThrow(
      /target: must name only one .* got "account and plan"/,
    );
    expect(() => layerOf({ acount: 'a' } as object)).toThrow(/target\.acount: unknown option/);
  });

  it('has a text of its own, whatever the characters of its names', () => {
    const names = ['', 'a', '"', '","', '\ud800', '\udfff', '\ufffd', '__proto__'];
    const targets = names.flatMap((name) => [
      { route: name },
      ...names.map((route) => ({ account: name, route })),
      ...[{ account: name }, { provider: name }, { plan: name }],
    ]);
    expect(new Set([{}, ...targets].map(targetKey)).size).toBe(targets.length + 1);
  });
});

describe('an entry of the history', () => {
  it('sets and resets limits, and says by whom, why and until when', () => {
    const adjustments = new Map<string, Adjustment>();
    const [account, other] = [{ account: 'a' }, { account: 'b' }];
    const windows = parseLimit(['5/1m']);
    const limits = [account, other].map((target) => ({ target, from: undefined, to: windows, until: 9 }));
    applyEntry(adjustments, { ...entryOf(1), limits });
    applyEntry(adjustments, { ...entryOf(2), limits: [{ target: other, from: windows, to: undefined }] });
    const adjustment = { target: account, windows, version: 1, by: 'jane', reason: 'INC-12', at: 5, until: 9 };
    expect([...adjustments]).toEqual([['["account","a"]', adjustment]]);
  });

  it(`is remembered, with the ${MAX_RECENT - 1} before it`, () => {
    const recent = Array.from({ length: MAX_RECENT }, (_, i) => entryOf(i));
    expect(withEntry([], entryOf(1))).toEqual([entryOf(1)]);
    expect(withEntry(recent, entryOf(MAX_RECENT))).toEqual([...recent.slice(1), entryOf(MAX_RECENT)]);
  });

  it('is the same head only with the same version and nonce', () => {
    expect(isSameHead(entryOf(1), { version: 1, nonce: 'n1' })).toBe(true);
    expect(isSameHead(undefined, undefined)).toBe(true);
    for (const other of [undefined, entryOf(2, 'n1'), entryOf(1, 'n2')])
      expect([isSameHead(entryOf(1), other), isSameHead(other, entryOf(1))]).toEqual([false, false]);
  });
});

describe('a process that has read the store', () => {
  const known = stateOf(entryOf(1), entryOf(2), entryOf(3));
  const all = (...recent: AdjustmentEntry[]) => ({ kind: 'all' as const, now: 0, state: stateOf(...recent) });

  it('follows a store that has the same history', () => {
    expect(reconcile(known, { kind: 'same', now: 0 })).toEqual({ kind: 'keep' });
    const entries = [entryOf(4)];
    expect(reconcile(known, { kind: 'changes', now: 0, entries })).toEqual({ kind: 'apply', entries });
    const ahead = all(entryOf(3), entryOf(4));
    expect(reconcile(known, ahead)).toEqual({ kind: 'adopt', state: ahead.state, forked: false });
    expect(reconcile(undefined, ahead)).toEqual({ kind: 'adopt', state: ahead.state, forked: false });
  });

  it('follows a store that is so far ahead that it does not know the head any more', () => {
    const ahead = all(entryOf(1_999), entryOf(2_000));
    expect(reconcile(known, ahead)).toEqual({ kind: 'adopt', state: ahead.state, forked: false });
  });

  it('brings an empty store forward, if it knows any history', () => {
    expect(reconcile(known, { kind: 'none', now: 0 })).toEqual({ kind: 'restore', seen: undefined });
    expect(reconcile(undefined, { kind: 'none', now: 0 })).toEqual({ kind: 'keep' });
  });

  it('brings a store forward that has lost the last changes', () => {
    const behind = all(entryOf(1), entryOf(2));
    expect(reconcile(known, behind)).toEqual({ kind: 'restore', seen: { version: 2, nonce: 'n2' } });
  });

  it.each([
    ['shorter', all(entryOf(1), entryOf(2, 'other'))],
    ['as long', all(entryOf(2), entryOf(3, 'other'))],
    ['longer', all(entryOf(3, 'other'), entryOf(4))],
  ])('takes over another history that is %s, and says so', (_, other) => {
    expect(reconcile(known, other)).toEqual({ kind: 'adopt', state: other.state, forked: true });
  });
});
