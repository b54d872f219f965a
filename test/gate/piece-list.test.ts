import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PieceList } from '../../src/gate/piece-list.ts';

const pieces = fc.array(
  fc.oneof(fc.uint8Array({ maxLength: 30 }), fc.uint8Array({ minLength: 4_000, maxLength: 5_000 })),
  {
    maxLength: 200,
  },
);

it('returns every byte once, in order, wherever it is taken', () => {
  fc.assert(
    fc.property(pieces, fc.array(fc.nat(200)), (added, takenAfter) => {
      const list = new PieceList();
      const taken: Uint8Array[] = [];
      for (const [i, piece] of added.entries()) {
        list.add(piece);
        if (takenAfter.includes(i)) taken.push(...list.take());
      }
      taken.push(...list.take());
      expect(Buffer.concat(taken).equals(Buffer.concat(added))).toBe(true);
      expect(list.take()).toEqual([]);
    }),
  );
});

it('a few pieces stay as they are', () => {
  const list = new PieceList();
  const added = Array.from({ length: 16 }, (_, i) => Uint8Array.of(i));
  for (const piece of added) list.add(piece);
  expect(list.take().every((piece, i) => piece === added[i])).toBe(true);
});

it('a million pieces of one byte are a few hundred arrays', () => {
  const list = new PieceList();
  for (let i = 0; i < 1_000_000; i++) list.add(Uint8Array.of(i % 256));
  const taken = list.take();
  expect(taken.length).toBeLessThan(300);
  expect(taken.reduce((length, piece) => length + piece.length, 0)).toBe(1_000_000);
});
