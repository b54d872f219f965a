/** Adjustments that are read in parts, while the server changes. The server is a script of replies. */
import { describe, expect, it } from 'vitest';
import type { Adjustment, AdjustmentEntry } from '../../src/core/adjustment.ts';
import { targetKey } from '../../src/core/adjustment.ts';
import { parseLimit } from '../../src/core/limit.ts';
import type { AdjustmentPart, ReadReply } from '../../src/shared-limits/stores/redis-reply.ts';
import { readWhole } from '../../src/shared-limits/stores/redis-whole.ts';

const AUTHOR = { at: 1, by: 'jane', reason: undefined };
const adjustmentOf = (account: string, max: number, version = 1): Adjustment => ({
  ...{ target: { account }, windows: parseLimit([`${max}/1m`]), version, until: undefined, ...AUTHOR },
});
const entryOf = (version: number, account: string, max?: number): AdjustmentEntry => ({
  ...{ version, nonce: `n${version}`, source: 'change', ...AUTHOR },
  limits: [{ target: { account }, from: undefined, to: max === undefined ? undefined : parseLimit([`${max}/1m`]) }],
});
const partOf = (next: string | undefined, ...adjustments: (Adjustment | string)[]): AdjustmentPart => ({
  next,
  adjustments: new Map(
    adjustments.map((one) => (typeof one === 'string' ? [one, undefined] : [targetKey(one.target), one])),
  ),
});
const allOf = (part: AdjustmentPart, version = 1): Extract<ReadReply, { kind: 'all' }> => ({
  ...{ kind: 'all', now: 5, head: { version, nonce: `n${version}` }, recent: [entryOf(version, 'a', 1)], part },
});

/** Reads it all from a server that replies so. */
async function read(first: AdjustmentPart, parts: AdjustmentPart[], replies: ReadReply[]) {
  const asked: unknown[] = [];
  const next = <T>(list: T[], what: unknown): Promise<T> => {
    asked.push(what);
    const reply = list.shift();
    return reply === undefined ? Promise.reject(new Error('the server is away')) : Promise.resolve(reply);
  };
  const reply = await readWhole(allOf(first), {
    read: (known) => next(replies, known?.version),
    readPart: (from) => next(parts, from),
  });
  return { reply, asked };
}
const [A, B, C] = [adjustmentOf('a', 1), adjustmentOf('b', 2), adjustmentOf('c', 3)];

describe('adjustments in parts', () => {
  it('one part is everything: nothing else is read', async () => {
    const { reply, asked } = await read(partOf(undefined, A, 'later'), [], []);
    expect(reply).toMatchObject({
      kind: 'all',
      now: 5,
      state: { head: { version: 1 }, adjustments: [A] },
      unreadable: 1,
    });
    expect(asked).toEqual([]);
  });

  it('several parts, of which one may repeat what another had', async () => {
    const parts = [partOf('9', B, A), partOf(undefined, C)];
    const { reply, asked } = await read(partOf('7', A), parts, [{ kind: 'same', now: 6, size: 3 }]);
    expect(reply).toMatchObject({ kind: 'all', now: 6, state: { adjustments: [A, B, C] }, unreadable: undefined });
    expect(asked).toEqual(['7', '9', 1]);
  });

  it('changes that come meanwhile are in the result, also if a part has seen some of them', async () => {
    const entries = [entryOf(2, 'b', 20), entryOf(3, 'a'), entryOf(4, 'd', 40)];
    const { reply } = await read(
      partOf('7', A),
      [partOf(undefined, adjustmentOf('b', 20, 2), C)],
      [{ kind: 'changes', now: 6, entries, unreadable: 1, size: 4 }],
    );
    expect(reply).toMatchObject({
      ...{ kind: 'all', now: 6, unreadable: 1 },
      state: {
        head: { version: 4, nonce: 'n4' },
        recent: [{ version: 1 }, { version: 2 }, { version: 3 }, { version: 4 }],
        adjustments: [adjustmentOf('b', 20, 2), C, adjustmentOf('d', 40, 4)],
      },
    });
  });

  it('what was replaced meanwhile is read again', async () => {
    const { reply, asked } = await read(
      partOf('7', A),
      [partOf(undefined, B), partOf(undefined, C)],
      [allOf(partOf('8', B), 9), { kind: 'same', now: 7, size: 2 }],
    );
    expect(reply).toMatchObject({ now: 7, state: { head: { version: 9 }, adjustments: [B, C] } });
    expect(asked).toEqual(['7', 1, '8', 9]);
  });

  it('a part that is missing is noticed, although the head is the same', async () => {
    const { reply, asked } = await read(
      partOf('7', A),
      [partOf(undefined, C)],
      [{ kind: 'same', now: 6, size: 3 }, allOf(partOf(undefined, A, B, C))],
    );
    expect(reply).toMatchObject({ state: { adjustments: [A, B, C] } });
    expect(asked).toEqual(['7', 1, undefined]);
  });

  it('a part that is missing is noticed, although a change came meanwhile', async () => {
    const { reply, asked } = await read(
      partOf('7', A),
      [partOf(undefined, C)],
      [
        { kind: 'changes', now: 6, entries: [entryOf(2, 'd', 40)], size: 4 },
        allOf(partOf(undefined, A, B, C, adjustmentOf('d', 40, 2)), 2),
      ],
    );
    expect(reply).toMatchObject({ state: { head: { version: 2 }, adjustments: { length: 4 } } });
    expect(asked).toEqual(['7', 1, undefined]);
  });

  it('what this version could not read, and a change has replaced or removed, is not counted any more', async () => {
    const entries = [entryOf(2, 'b', 20), entryOf(3, 'c')];
    const [keyOfB, keyOfC] = [targetKey(B.target), targetKey(C.target)];
    const { reply } = await read(
      partOf('7', A),
      [partOf(undefined, keyOfB, keyOfC, 'later')],
      [{ kind: 'changes', now: 6, entries, size: 3 }],
    );
    expect(reply).toMatchObject({ unreadable: 1, state: { adjustments: [A, adjustmentOf('b', 20, 2)] } });
  });

  it('a server that has lost everything meanwhile has none', async () => {
    const { reply } = await read(partOf('7', A), [partOf(undefined, B)], [{ kind: 'none', now: 6 }]);
    expect(reply).toEqual({ kind: 'none', now: 6 });
  });

  it('fails if the server does not answer any more, or is replaced again and again', async () => {
    await expect(read(partOf('7', A), [], [])).rejects.toThrow('the server is away');
    const parts = Array.from({ length: 9 }, () => partOf(undefined, B));
    const replies = Array.from({ length: 9 }, (_, i) => allOf(partOf('7', A), i + 2));
    await expect(read(partOf('7', A), parts, replies)).rejects.toThrow('were replaced 5 times while they were read');
  });
});
