import fc from 'fast-check';
import { expect, it } from 'vitest';
import { headgateParser } from '../src/headgate-line.ts';
import { Names } from '../src/line.ts';
import { LineCursor } from '../src/line-cursor.ts';
import { QuickReader } from '../src/quick-line.ts';

const START = Date.UTC(2026, 0, 1);
const LOGGED = { level: 30, time: '2026-01-01T00:00:00.000Z', req_id: 'r', route: 'GET /x', account: 'a', cost: 1 };

const logged = (rest: object): string =>
  JSON.stringify({ ...LOGGED, at: START, order: 1, decision: 'accepted', ms: 1.25, ...rest, msg: 'request' });

/** The cursor at the only line. */
function cursorAt(line: string | Uint8Array): LineCursor {
  const cursor = new LineCursor(typeof line === 'string' ? new TextEncoder().encode(line) : line);
  cursor.next();
  return cursor;
}

const SPACE = 32;

/** A space makes the same line one that has to be parsed. */
const parsed = (bytes: Uint8Array) => headgateParser(new Names())(cursorAt(Uint8Array.of(SPACE, ...bytes)));

const QUICK = [
  logged({}),
  logged({ provider: 'p', plan: 'pro', decision: 'rejected', order: 0, worker: 3 }),
  logged({ plan: 'pro' }),
  logged({ route: 'GET /x/{id}/*', account: '' }),
  logged({ account: 'é 日本 \u{1f600}', path: null, aborted: true, other: -0.5 }),
  // Of two equal keys the last one counts.
  logged({}).replace('"cost"', '"account":"b","at":5,"cost"'),
  logged({}).replace('"msg":"request"', '"msg":"decision"'),
  logged({}).replace('"level":30', '"msg":"other","level":40'),
  logged({ at_: 5, account_: 'c', path: '/{x}' }),
];
const PARSED = [
  logged({ account: '","at":1,"account":"b' }),
  logged({ account: 'a \u0000 \\' }),
  logged({ plan: null }),
  logged({ at: -1 }),
  logged({ at: 1.5 }),
  logged({ at: null }),
  logged({ cost: 0 }),
  logged({ cost: '1' }),
  logged({ order: 12_345_678_901_234_567_000 }),
  logged({ degraded: true }),
  logged({ blocked: true, decision: 'rejected' }),
  logged({ decision: 'refused' }),
  logged({ nested: { account: 'b', at: 7 } }),
  logged({ list: ['account', 'b'] }),
  logged({ account: 5 }),
  logged({ ms: 1e-7 }),
  logged({ time: 'x' }).replace('"x"', '012'),
  logged({}).replace('1.25', '1.'),
  logged({}).replace('1.25', '-'),
  logged({}).replace('1.25', 'tru'),
  logged({}).replace('"cost":1', '"cost":01'),
  logged({}).replace('"cost":', '"cost" :'),
  logged({}).replace('"request"}', '"request",}'),
  `{"level":30,${logged({})}`,
  `${logged({})}}`,
  '{',
  '{}',
  '{"msg":"request',
  '',
];

it('a line as the gateway writes it is read without parsing it, whatever the line before was', () => {
  const reader = new QuickReader(new Names());
  for (const line of [...QUICK, ...PARSED, ...QUICK.toReversed()]) {
    const quick = reader.read(cursorAt(line));
    expect(quick === undefined, line).toBe(PARSED.includes(line));
    if (quick !== undefined) expect(quick).toEqual(parsed(new TextEncoder().encode(line)));
  }
});

const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constantFrom('accepted', 'rejected', 'request', 'decision', 'a'.repeat(100)),
);
const value = fc.oneof(
  text,
  fc.integer({ min: -1, max: START }),
  fc.double(),
  fc.constantFrom(null, true, [], {}, 2 ** 53),
);
const key = fc.oneof(fc.constantFrom('at', 'cost', 'order', 'plan', 'account', 'msg', 'degraded', 'level'), text);
/** Bytes that replace some of a line's. */
const damage = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  removed: fc.nat(3),
  bytes: fc.uint8Array({ maxLength: 3 }),
});

it('no damage to a line makes it read otherwise than it is parsed', () => {
  const reader = new QuickReader(new Names());
  let quickOnes = 0;
  const line = fc.tuple(fc.dictionary(key, value, { maxKeys: 3 }), fc.array(damage, { maxLength: 1 }));
  fc.assert(
    fc.property(line, ([rest, damages]) => {
      let bytes = new TextEncoder().encode(logged(rest));
      for (const { at, removed, bytes: other } of damages) {
        const from = Math.floor(at * bytes.length);
        bytes = Uint8Array.of(
          ...bytes.subarray(0, from),
          ...other.filter((byte) => byte !== 10),
          ...bytes.subarray(from + removed),
        );
      }
      const quick = reader.read(cursorAt(bytes));
      if (quick === undefined) return;
      quickOnes++;
      expect(quick).toEqual(parsed(bytes));
    }),
    { numRuns: 1_000 },
  );
  expect(quickOnes).toBeGreaterThan(100);
});

it('a log whose keys are always other ones is parsed, and takes no memory', () => {
  const reader = new QuickReader(new Names());
  for (let i = 0; i < 200; i++) {
    const line = logged({ [`key${i}`]: i });
    const quick = reader.read(cursorAt(line));
    if (quick !== undefined) expect(quick).toEqual(parsed(new TextEncoder().encode(line)));
    expect(quick === undefined).toBe(i >= 64 - Object.keys(LOGGED).length - 5);
  }
});
