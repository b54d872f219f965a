import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { isBodyError } from 'headgate/http';
import { bytesOf, chunkLengths, inChunks } from 'headgate-testbed/bodies';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SpooledBody, type SpoolOptions, spoolBody } from '../../src/body/spool.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'headgate-spool-test-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const spool = (source: Readable, options: Partial<SpoolOptions> = {}): Promise<SpooledBody> =>
  spoolBody(source, { maxBytes: 10_000_000, directory, ...options });
const streamOf = (bytes: Uint8Array, lengths?: readonly number[]): Readable => Readable.from(inChunks(bytes, lengths));
const reasonOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'none',
    (error: unknown) => (isBodyError(error) ? `${error.status} ${error.reason}` : error),
  );
/** Files of the folder that this process has open and that no longer have a name. */
const openFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.startsWith(directory) ? [`/proc/self/fd/${fd}`] : [];
    } catch {
      return [];
    }
  });
const big = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, i) => (i * 31) % 251));

describe('a spooled body', () => {
  it('I13: has the same bytes, any number of times', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(200_000),
        fc.constantFrom(0, 1_000, 100_000, 1_000_000),
        chunkLengths,
        fc.boolean(),
        async (size, memoryBytes, lengths, isPushed) => {
          const bytes = big.subarray(0, size);
          const scaled = lengths.map((length) => length * 997);
          const source = isPushed ? new PassThrough() : streamOf(bytes, scaled);
          const spooling = spool(source, { memoryBytes });
          if (source instanceof PassThrough) {
            for (const chunk of inChunks(bytes, scaled)) source.write(chunk);
            source.end();
          }
          const body = await spooling;
          expect(body.size).toBe(size);
          expect(body.isOnDisk).toBe(size > memoryBytes);
          const [first, second] = await Promise.all([buffer(body.open()), buffer(body.open())]);
          expect(first.equals(bytes)).toBe(true);
          expect(second.equals(bytes)).toBe(true);
          await body.dispose();
        },
      ),
      { numRuns: 60 },
    );
    expect(openFiles()).toEqual([]);
  });

  it('copies its bytes: reused chunks, and readers that write into theirs, change nothing', async () => {
    for (const memoryBytes of [0, 1_000_000]) {
      const chunk = Buffer.alloc(1_000);
      const source = new Readable({ read() {} });
      const spooling = spool(source, { memoryBytes });
      for (let i = 0; i < 200; i++) {
        // The chunk before must have been taken, because this one uses the same memory.
        do await nextTurn();
        while (source.isPaused() || source.readableLength > 0);
        source.push(chunk.fill(i));
      }
      source.push(null);
      const body = await spooling;
      for await (const piece of body.open()) (piece as Buffer).fill(0xff);
      const again = await buffer(body.open());
      for (let i = 0; i < 200; i++) expect(again[i * 1_000 + 999]).toBe(i);
      await body.dispose();
    }
  });

  it('is in a private file without a name', async () => {
    const body = await spool(streamOf(big), { memoryBytes: 1_000 });
    expect(readdirSync(directory)).toEqual([]);
    const [file] = openFiles();
    const { mode, nlink, size } = statSync(file as string);
    expect({ mode: mode & 0o777, nlink, size }).toEqual({ mode: 0o600, nlink: 0, size: big.length });
    await body.dispose();
    await body.dispose();
    expect(openFiles()).toEqual([]);
  });

  it('breaks off open streams when it is disposed of, and opens no more', async () => {
    for (const memoryBytes of [0, 1_000_000]) {
      const body = await spool(streamOf(big), { memoryBytes });
      const stream = body.open();
      await once(stream, 'readable');
      const broken = buffer(stream);
      await body.dispose();
      await expect(broken).rejects.toThrow('disposed');
      expect(() => body.open()).toThrow('disposed');
    }
    expect(openFiles()).toEqual([]);
  });

  it('I13: is refused past its bound, with everything freed and the source paused', async () => {
    for (const memoryBytes of [0, 1_000_000]) {
      const source = new PassThrough({ highWaterMark: 1_000_000 });
      source.write(big);
      expect(await reasonOf(spool(source, { maxBytes: big.length - 1, memoryBytes }))).toBe('413 too_large');
      expect(source.isPaused()).toBe(true);
      expect(source.destroyed).toBe(false);
      expect((await spool(streamOf(big), { maxBytes: big.length })).size).toBe(big.length);
    }
    expect(readdirSync(directory)).toEqual([]);
  });

  it('I13: never hangs: aborted, broken, stalled, given up, already read', async () => {
    const aborted = new PassThrough();
    aborted.write('x');
    setImmediate(() => aborted.destroy());
    expect(await reasonOf(spool(aborted))).toBe('400 aborted');
    expect(await reasonOf(spool(aborted))).toBe('400 aborted');

    const broken = new PassThrough();
    setImmediate(() => broken.destroy(new Error('reset')));
    expect(await reasonOf(spool(broken))).toBe('400 aborted');
    const throwing = (async function* (): AsyncGenerator<Uint8Array> {
      yield bytesOf('x');
      throw new Error('reset');
    })();
    expect(await reasonOf(spool(Readable.from(throwing)))).toBe('400 aborted');

    expect(await reasonOf(spool(new PassThrough(), { idleMs: 5 }))).toBe('408 stalled');
    const half = new PassThrough();
    half.write('x');
    expect(await reasonOf(spool(half, { idleMs: 5 }))).toBe('408 stalled');

    const gone = new PassThrough();
    setImmediate(() => gone.destroy());
    expect(await reasonOf(spool(gone))).toBe('400 aborted');

    const consumed = streamOf(big);
    await buffer(consumed);
    expect(await reasonOf(spool(consumed))).toBe('500 already_read');
    expect(await reasonOf(spool(streamOf(big).setEncoding('utf8')))).toBe('500 already_read');
  });

  it('an error that comes after the refusal does not end the process', async () => {
    const source = new PassThrough();
    source.write(big);
    await reasonOf(spool(source, { maxBytes: 1 }));
    const closed = new Promise((resolve) => source.once('close', resolve));
    source.destroy(new Error('reset'));
    await closed;
  });

  it('fails with no_storage if there is no room', async () => {
    expect(await reasonOf(spool(streamOf(big), { memoryBytes: 0, directory: join(directory, 'none') }))).toBe(
      '503 no_storage',
    );
    expect(await reasonOf(spool(streamOf(big), { memoryBytes: 0, directory: '/proc' }))).toBe('503 no_storage');
  });

  it('reads no faster than it can store, and passes every byte to the observer once', async () => {
    let pulled = 0;
    const source = new Readable({
      highWaterMark: 65_536,
      read() {
        pulled++;
        this.push(pulled > 300 ? null : Buffer.alloc(65_536, pulled));
      },
    });
    const sizes: number[] = [];
    const body = await spool(source, { maxBytes: 30_000_000, observe: (chunk) => void sizes.push(chunk.length) });
    expect(body.size).toBe(300 * 65_536);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(body.size);
    await body.dispose();
  });

  it('ends with the error that the observer throws', async () => {
    const observe = (): never => {
      throw new Error('enough');
    };
    await expect(spool(streamOf(big), { observe })).rejects.toThrow('enough');
    await expect(spool(Readable.from([big]), { observe })).rejects.toThrow('enough');
  });

  it('I13: over a socket: sent in tiny pieces, broken off by the client, refused and still answered', async () => {
    const outcomes: unknown[] = [];
    const server = createServer(async (request: IncomingMessage, response) => {
      const outcome = await reasonOf(
        spool(request, { maxBytes: 100_000, memoryBytes: 100 }).then(async (body) => {
          response.end(await buffer(body.open()));
          await body.dispose();
        }),
      );
      outcomes.push(outcome);
      if (outcome !== '413 too_large') return;
      response.writeHead(413).end();
      request.resume();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const send = () => httpRequest({ port, method: 'POST', headers: { connection: 'close' } });

    const tiny = send();
    for (let i = 0; i < 1_000; i++) tiny.write('x');
    tiny.end();
    const [answer] = (await once(tiny, 'response')) as [IncomingMessage];
    expect((await buffer(answer)).toString()).toBe('x'.repeat(1_000));

    const broken = send().on('error', () => {});
    const arrived = once(server, 'request');
    broken.write('x'.repeat(10_000));
    await arrived;
    setTimeout(() => broken.destroy(), 20);
    await new Promise((resolve) => broken.once('close', resolve));

    const large = send().on('error', () => {});
    large.end(Buffer.alloc(5_000_000));
    const [refused] = (await once(large, 'response')) as [IncomingMessage];
    expect(refused.statusCode).toBe(413);
    refused.resume();

    await new Promise((resolve) => server.close(resolve));
    expect(outcomes.toSorted()).toEqual(['400 aborted', '413 too_large', 'none']);
    expect(openFiles()).toEqual([]);
  });
});
