import type { ServerResponse } from 'node:http';
import { connect as tcp } from 'node:net';
import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { eventually } from 'headgate-testbed/raw-http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type KeyedServer, serveKeyed } from '../../support/keyed-server.ts';

interface Step {
  readonly how: 'write' | 'callback' | 'pressure' | 'flush' | 'pause';
  readonly size: number;
  readonly encoding: 'bytes' | 'latin1' | 'hex' | 'base64';
}

interface Script {
  readonly status: number;
  readonly head: 'none' | 'object' | 'list' | 'set';
  readonly length: boolean;
  readonly steps: readonly Step[];
  readonly last: number | undefined;
}

/** Sizes instead of bytes, so that a counterexample can be read. */
const size = fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 200_000 }));
/** The 256 values of `(i * 31) % 256` in their order, again and again. */
const CYCLE = Buffer.from(Array.from({ length: 256 }, (_, i) => (i * 31) % 256));
const bytesOf = (length: number): Buffer =>
  Buffer.alloc(
    length,
    CYCLE.map((byte) => byte + length),
  );

const script: fc.Arbitrary<Script> = fc.record({
  status: fc.constantFrom(200, 201, 204, 304, 404, 500),
  head: fc.constantFrom('none', 'object', 'list', 'set'),
  length: fc.boolean(),
  steps: fc.array(
    fc.record({
      how: fc.constantFrom<Step['how'][]>('write', 'callback', 'pressure', 'flush', 'pause'),
      size,
      encoding: fc.constantFrom<Step['encoding'][]>('bytes', 'latin1', 'hex', 'base64'),
    }),
    { maxLength: 6 },
  ),
  last: fc.option(size, { nil: undefined }),
});

const sizeOf = ({ steps, last }: Script) =>
  steps.reduce((sum, step) => sum + (step.how === 'flush' || step.how === 'pause' ? 0 : step.size), last ?? 0);

/**
 * What a client should see. A bare server cannot be the reference: Node's HTTP/2 sends other bytes for a string that is
 * written with an empty buffer.
 */
const writtenBy = ({ status, steps, last }: Script): Buffer =>
  status === 204 || status === 304
    ? Buffer.alloc(0)
    : Buffer.concat([
        ...steps.filter(({ how }) => how !== 'flush' && how !== 'pause').map((step) => bytesOf(step.size)),
        bytesOf(last ?? 0),
      ]);

function writeHead(plan: Script, response: ServerResponse): void {
  const { status, head } = plan;
  const fields: Record<string, string> = { 'x-own': '1' };
  if (plan.length && status !== 204 && status !== 304) fields['content-length'] = String(sizeOf(plan));
  if (head === 'object') response.writeHead(status, fields);
  else if (head === 'list') response.writeHead(status, Object.entries(fields).flat());
  else {
    response.statusCode = status;
    if (head === 'set') for (const [name, value] of Object.entries(fields)) response.setHeader(name, value);
  }
}

async function play(plan: Script, response: ServerResponse): Promise<void> {
  const { steps, last } = plan;
  writeHead(plan, response);
  for (const { how, size: length, encoding } of steps) {
    const piece = bytesOf(length);
    const chunk: [Uint8Array] | [string, BufferEncoding] =
      encoding === 'bytes' ? [piece] : [piece.toString(encoding), encoding];
    const write = response.write.bind(response) as (...args: unknown[]) => boolean;
    if (how === 'flush') response.flushHeaders();
    else if (how === 'pause') await new Promise((resolve) => setTimeout(resolve, 2));
    else if (how === 'callback') await new Promise<void>((resolve) => void write(...chunk, () => resolve()));
    else if (!write(...chunk) && how === 'pressure' && !response.destroyed) {
      await new Promise((resolve) => response.once('drain', resolve));
    }
    // A handler may reuse its buffer after the callback.
    if (how === 'callback') piece.fill(0);
  }
  response.end(last === undefined ? undefined : bytesOf(last));
}

describe.each([
  ['reject', 'HTTP/1', false],
  ['reexecute', 'HTTP/1', false],
  ['reject', 'HTTP/2', true],
  ['reexecute', 'HTTP/2', true],
] as const)('whatever a handler does, onOrphan %s, over %s', (onOrphan, _, http2) => {
  let plan: Script;
  let keyed: KeyedServer;
  let bare: KeyedServer;
  let keys = 0;
  beforeAll(async () => {
    const handler = (_: unknown, response: ServerResponse) => play(plan, response);
    keyed = await serveKeyed(handler, {
      settings: { onOrphan, maxKeptBytes: 400_000 },
      allMethods: ['1000000/1m'],
      http2,
    });
    bare = await serveKeyed(handler, { gate: { idempotent: () => undefined }, allMethods: ['1000000/1m'], http2 });
  });
  afterAll(() => Promise.all([keyed.close(), bare.close()]));

  const goneOver1 = (key: string) => {
    const socket = tcp(keyed.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(
      `POST / HTTP/1.1\r\nhost: x\r\nx-account: a\r\ncontent-type: application/json\r\nidempotency-key: ${key}\r\ncontent-length: 7\r\n\r\n{"a":1}`,
    );
    return () => socket.destroy();
  };
  const goneOver2 = (key: string) => {
    const client = new AbortController();
    keyed.post('/', { 'idempotency-key': key }, undefined, client.signal).catch(() => {});
    return () => client.abort();
  };

  it('I4: its client and every retry see what the client would see without a key', async () => {
    await fc.assert(
      fc.asyncProperty(script, async (next) => {
        plan = next;
        const key = { 'idempotency-key': `k${keys++}` };
        const [first, second, native] = [
          await keyed.post('/', key),
          await keyed.post('/', key),
          await bare.post('/', key),
        ];
        const written = writtenBy(plan);
        if (!http2) expect(native.body.equals(written)).toBe(true);
        expect([first.status, first.body.equals(written), first.broken]).toEqual([native.status, true, false]);
        expect(first.headers['x-own']).toBe(native.headers['x-own']);
        if (first.body.length > 400_000) expect(second.status).toBe(409);
        else {
          expect([second.status, second.body.equals(written)]).toEqual([native.status, true]);
          expect([second.headers['x-own'], second.headers['idempotency-replayed']]).toEqual([
            native.headers['x-own'],
            'true',
          ]);
        }
      }),
      { numRuns: randomRuns(24) },
    );
  });

  it('I11: the retry of a client that disconnected at any moment sees it too', async () => {
    await fc.assert(
      fc.asyncProperty(script, fc.integer({ min: 0, max: 12 }), async (next, afterMs) => {
        plan = next;
        const key = `k${keys++}`;
        const runs = keyed.runs;
        const disconnect = http2 ? goneOver2(key) : goneOver1(key);
        await eventually(() => keyed.runs > runs, 'the handler runs');
        await new Promise((resolve) => setTimeout(resolve, afterMs));
        disconnect();
        const retry = await keyed.post('/', { 'idempotency-key': key });
        const written = writtenBy(plan);
        expect(keyed.runs).toBe(runs + 1);
        if (written.length > 400_000) expect(retry.status).toBe(409);
        else expect([retry.status, retry.body.equals(written)]).toEqual([plan.status, true]);
      }),
      { numRuns: randomRuns(16) },
    );
  });
});
