import fc from 'fast-check';
import {
  boundaries,
  bytesOf,
  chunkLengths,
  contents,
  multipart,
  multipartType,
  unquoted,
  type WrittenPart,
} from 'headgate-testbed/bodies';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { isBodyError } from '../../../src/http/body-error.ts';
import { makeFingerprint } from '../../support/fingerprint-of.ts';

const TYPES = [
  'application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=b',
  'text/plain',
];

/** The fingerprint, or the reason why the body was refused. */
function outcome(body: Uint8Array, type: string, lengths?: readonly number[]): string {
  try {
    return makeFingerprint(body, type, lengths === undefined ? {} : { lengths }).value;
  } catch (error) {
    if (!isBodyError(error)) throw error;
    return error.reason;
  }
}

const names = fc.string({ unit: fc.constantFrom('a', 'b', 'é', ' ', '[', ']', '.'), minLength: 1, maxLength: 3 });
const headerLines = fc.constantFrom('Content-Type: text/plain', 'Content-Type: image/png', 'X-A: 1', 'x-a: 2', 'X-B:');
const part = (boundary: string): fc.Arbitrary<WrittenPart> =>
  fc
    .record({
      name: names,
      filename: fc.option(names, { nil: undefined }),
      lines: fc.uniqueArray(headerLines, { maxLength: 2, selector: (line) => line.slice(0, 3).toLowerCase() }),
      content: contents(boundary),
    })
    .map(({ name, filename, lines, content }) => ({
      headers: [
        `Content-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}`,
        ...lines,
      ],
      content: Buffer.from(content).includes(`--${boundary}`) ? 'x' : content,
    }));

const bodies = boundaries.chain((quoted) =>
  fc
    .array(part(unquoted(quoted)), { minLength: 1, maxLength: 5 })
    .map((parts) => ({ boundary: unquoted(quoted), parts })),
);
/** A boundary that no content contains. */
const OTHER = `other${'-'.repeat(30)}`;
const nameOf = ({ headers }: WrittenPart): string => /name="([^"]*)"/.exec(String(headers[0]))?.[1] as string;

/** The parts in another order. Parts with the same name keep their order. */
function reordered(parts: readonly WrittenPart[], keys: readonly number[]): readonly WrittenPart[] {
  const queues = new Map<string, WrittenPart[]>();
  for (const written of parts) queues.set(nameOf(written), [...(queues.get(nameOf(written)) ?? []), written]);
  const order = parts.map((written, i) => ({ name: nameOf(written), key: keys[i] ?? 0 }));
  return order
    .toSorted((left, right) => left.key - right.key)
    .map(({ name }) => queues.get(name)?.shift() as WrittenPart);
}

describe('I3: over random bodies', () => {
  it('any chunking of the same bytes gives the same fingerprint', () => {
    const fragments = fc.constantFrom(
      '{"a":',
      '[1,',
      '"x"',
      '}',
      ']',
      'a=1&',
      '%4',
      '1',
      '--b\r\n',
      'A: 1\r\n',
      '\r\n',
      '--b--',
      '\xff',
      '--',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc.array(fragments, { maxLength: 12 }).map((pieces) => pieces.join('')),
        ),
        fc.constantFrom(...TYPES),
        chunkLengths,
        (text, type, lengths) => {
          const body = Buffer.from(text, 'latin1');
          expect(outcome(body, type, lengths)).toBe(outcome(body, type));
        },
      ),
      { numRuns: randomRuns(800) },
    );
  });

  it('multipart: bodies with the same meaning have the same fingerprint', () => {
    fc.assert(
      fc.property(
        bodies,
        fc.array(fc.nat(9), { minLength: 5, maxLength: 5 }),
        chunkLengths,
        ({ boundary, parts }, keys, lengths) => {
          const base = makeFingerprint(
            multipart({ boundary, parts }),
            `multipart/form-data; boundary="${boundary}"`,
          ).value;
          const again = reordered(parts, keys).map(({ headers, content }) => ({
            headers: headers.toReversed().map((line) => String(line).replace(/^[^:]+/, (name) => name.toUpperCase())),
            content,
          }));
          const other = multipart({ boundary: OTHER, parts: again, preamble: 'x\r\n', epilogue: '\r\ny' });
          expect(makeFingerprint(other, multipartType(OTHER), { lengths }).value).toBe(base);
        },
      ),
      { numRuns: randomRuns(300) },
    );
  });

  it('multipart: a changed byte of a content, a name or a type gives another fingerprint, or an error', () => {
    fc.assert(
      fc.property(bodies, fc.nat(), fc.integer({ min: 1, max: 255 }), ({ boundary, parts }, at, change) => {
        const type = `multipart/form-data; boundary="${boundary}"`;
        const body = multipart({ boundary, parts });
        const inside = body.indexOf(';') + 1;
        const position = inside + (at % (body.length - inside - 4 - boundary.length));
        const changed = Buffer.from(body);
        changed[position] = (changed[position] as number) ^ change;
        const [before, after] = [outcome(body, type), outcome(changed, type)];
        // Only the case of a header's name is ignored.
        const differsInCase = change === 0x20 && /[a-z-]/i.test(String.fromCharCode(body[position] as number));
        if (differsInCase && before === after) {
          const lineStart = body.lastIndexOf('\n', position - 1) + 1;
          expect(body.subarray(lineStart, position).toString('latin1')).toMatch(/^[A-Za-z-]*$/);
        } else expect(after).not.toBe(before);
      }),
      { numRuns: randomRuns(800) },
    );
  });

  it('JSON: bodies have the same fingerprint if and only if they have the same meaning', () => {
    const shuffled = (value: unknown, turn: boolean): unknown => {
      if (Array.isArray(value)) return value.map((item) => shuffled(item, turn));
      if (typeof value !== 'object' || value === null) return value;
      const entries = Object.entries(value).map(([key, inner]) => [key, shuffled(inner, !turn)] as const);
      return Object.fromEntries(turn ? entries.toReversed() : entries);
    };
    const type = 'application/json';
    // `__proto__` is left out, because it may be set as a prototype instead of a property.
    const values = fc
      .jsonValue({ maxDepth: 5, noUnicodeString: false } as object)
      .filter((value) => !JSON.stringify(value).includes('__proto__'));
    fc.assert(
      fc.property(values, values, (value, other) => {
        const base = outcome(bytesOf(JSON.stringify(value)), type);
        expect(outcome(bytesOf(JSON.stringify(shuffled(value, true), null, 1)), type)).toBe(base);
        const canonical = (of: unknown): string => JSON.stringify(of, (_, inner) => sorted(inner));
        expect(outcome(bytesOf(JSON.stringify(other)), type) === base).toBe(canonical(value) === canonical(other));
      }),
      { numRuns: randomRuns(600) },
    );
  });

  it('forms: bodies have the same fingerprint if and only if they have the same decoded pairs', () => {
    const pairs = fc.array(fc.tuple(fc.uint8Array({ maxLength: 4 }), fc.uint8Array({ maxLength: 4 })), {
      minLength: 1,
      maxLength: 4,
    });
    const escaped = (all: readonly (readonly [Uint8Array, Uint8Array])[], lazily: boolean): Uint8Array => {
      const one = (bytes: Uint8Array): string =>
        [...bytes]
          .map((byte) =>
            lazily && /[a-z0-9]/i.test(String.fromCharCode(byte))
              ? String.fromCharCode(byte)
              : lazily && byte === 0x20
                ? '+'
                : `%${byte.toString(16).padStart(2, '0')}`,
          )
          .join('');
      return bytesOf(all.map(([name, value]) => `${one(name)}=${one(value)}`).join('&'));
    };
    const type = 'application/x-www-form-urlencoded';
    fc.assert(
      fc.property(pairs, pairs, (all, others) => {
        const base = outcome(escaped(all, false), type);
        expect(outcome(escaped(all, true), type)).toBe(base);
        const isSame =
          JSON.stringify(all.map((pair) => pair.map((bytes) => [...bytes]))) ===
          JSON.stringify(others.map((pair) => pair.map((bytes) => [...bytes])));
        expect(outcome(escaped(others, true), type) === base).toBe(isSame);
      }),
      { numRuns: randomRuns(600) },
    );
  });
});

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)));
}
