/** I13: large bodies of keyed requests are read once and forwarded byte for byte, and no file is left. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { field, file, multipart, multipartType } from 'headgate-testbed/bodies';
import { openRaw } from 'headgate-testbed/raw-http';
import { answer, held, type Seen, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expectProblem, type Gateway, scratchFolder, startGateway } from '../support/gateway.ts';
import {
  BODY,
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  OPEN,
  post,
  postChunked,
  rawPost,
  reached,
} from '../support/keyed.ts';

const MAX_BODY = 24 * 1_048_576;
const EMAILS = '/api/v1/emails';
let upstream: Upstream;
let gateway: Gateway;
let folder: string;

function startIn(directory: string): Promise<Gateway> {
  const config = keyedConfig(upstream.url, { maxBodyBytes: MAX_BODY });
  return startGateway(config, [], { TMPDIR: directory });
}

beforeAll(async () => {
  upstream = await startUpstream();
  folder = join(scratchFolder(), 'tmp');
  mkdirSync(folder);
  gateway = await startIn(folder);
});
afterAll(async () => {
  expect((await gateway.stop()).code).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});
beforeEach(() => {
  upstream.seen.length = 0;
  upstream.behave(answer());
});

const shaOf = (body: Buffer): string => createHash('sha256').update(body).digest('hex');

/** Checks that the request has one framing, and the right one. */
function expectWhole(call: Seen | undefined, body: Buffer) {
  expect(call?.bytes()).toBe(body.length);
  expect(call?.sha256()).toBe(shaOf(body));
  const { 'content-length': length, 'transfer-encoding': coding } = call?.headers ?? {};
  expect([length, coding]).toEqual(coding === undefined ? [String(body.length), undefined] : [undefined, 'chunked']);
}

describe('a mail of 20 MiB in three attachments', () => {
  const MIB = 1_048_576;
  const parts = [
    file('attachments', 'Übersicht.pdf', randomBytes(12 * MIB), 'application/pdf'),
    file('attachments', '報告 2026.zip', randomBytes(7 * MIB), 'application/zip'),
    field('account_id', 'acc_2'),
    file('attachments', '😀.bin', randomBytes(MIB + 1), 'application/octet-stream'),
    field('subject', 'Grüße'),
  ];
  const mail = (boundary: string, these = parts) => {
    const body = multipart({ boundary, parts: these });
    return { path: EMAILS, type: multipartType(boundary), body };
  };

  it('arrives byte for byte; its retry with another boundary is a replay (I3, I4)', async () => {
    const key = freshKey();
    const first = mail('----WebKitFormBoundary1');
    const original = await post(gateway, key, first);
    expectOriginal(original);
    expectWhole(callsOf(upstream, key)[0], first.body);
    expect(upstream.last().headers['content-type']).toBe(first.type);
    expectReplay(await post(gateway, key, mail('another')), original);
    const [pdf, zip, ...rest] = parts;
    const changed = Buffer.from(zip?.content as Buffer);
    changed.writeUInt8(changed.readUInt8(7 * MIB - 1) ^ 1, 7 * MIB - 1);
    const other = mail('another', [pdf, { ...zip, content: changed }, ...rest] as typeof parts);
    const { detail } = expectProblem(await post(gateway, key, other), 409, 'errors/already_used');
    expect(detail).toMatch(/attachments\[1\]/);
    expect(callsOf(upstream, key)).toHaveLength(1);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('forwarded unchanged', () => {
  it.each([
    ['none', 0],
    ['one byte', 1],
    ['the most that stays in memory', 1_048_576],
    ['one byte more', 1_048_577],
    ['3 MB', 3_000_001],
  ])('%s', async (_title, size) => {
    const key = freshKey();
    const body = randomBytes(size);
    expectOriginal(await post(gateway, key, { type: 'application/octet-stream', body }));
    expectWhole(callsOf(upstream, key)[0], body);
    const replay = await post(gateway, key, { type: 'application/octet-stream', body });
    expect(replay.headers['idempotency-replayed']).toBe('true');
  });

  it.each([100, 2_500_000])('chunked, of %i bytes', async (size) => {
    const key = freshKey();
    const body = randomBytes(size);
    const pieces = [body.subarray(0, 7), body.subarray(7, size / 2), body.subarray(size / 2)];
    expectOriginal(await postChunked(gateway, key, pieces, { type: 'application/octet-stream' }));
    expectWhole(callsOf(upstream, key)[0], body);
  });

  it('an upstream that answers before it has read everything: its answer is passed on and stored', async () => {
    const key = freshKey();
    upstream.behave((_seen, response) => {
      response.writeHead(422, { 'content-type': 'text/plain', connection: 'close' });
      response.end('enough');
    });
    const body = randomBytes(5_000_000);
    const original = await post(gateway, key, { type: 'application/octet-stream', body });
    expect([422, 503]).toContain(original.status);
    const replay = await post(gateway, key, { type: 'application/octet-stream', body });
    expect({ status: replay.status, text: replay.text }).toEqual({ status: original.status, text: original.text });
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});

describe('maxBodyBytes', () => {
  it.each([
    ['a length', {}],
    ['a length and Expect: 100-continue', { expect: '100-continue' }],
  ])('declared by %s: 413 before the body is read', async (_title, headers) => {
    const key = freshKey();
    const connection = await openRaw(gateway.port);
    connection.write(rawPost(key, OPEN, { ...headers, 'content-length': String(MAX_BODY + 1) }, ''));
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expectProblem(reply as never, 413, 'errors/payload_too_large');
    expect(connection.received()).not.toContain('100 Continue');
    expectOriginal(await post(gateway, key));
  });

  it.each([OPEN, EMAILS])('a chunked body past it: 413, no claim, nothing forwarded, no file: %s', async (path) => {
    const key = freshKey();
    const connection = await openRaw(gateway.port);
    const type = 'multipart/form-data; boundary=b';
    connection.write(rawPost(key, path, { 'transfer-encoding': 'chunked', 'content-type': type }, ''));
    const start = Buffer.from('--b\r\ncontent-disposition: form-data; name="x"; filename="x"\r\n\r\n');
    const chunk = (bytes: Buffer) =>
      Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
    connection.write(chunk(start));
    const block = chunk(Buffer.alloc(0x100000, 'x'));
    for (let sent = 0; sent <= MAX_BODY && !connection.socket.destroyed; sent += 0x100000) connection.write(block);
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expectProblem(reply as never, 413, 'errors/payload_too_large');
    expect(callsOf(upstream, key)).toHaveLength(0);
    expectOriginal(await post(gateway, key, { body: BODY }));
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('files', () => {
  it('no file is left by an upload that breaks off, nor by a kill -9 during an upload', async () => {
    const doomedFolder = join(scratchFolder(), 'tmp');
    mkdirSync(doomedFolder);
    const doomed = await startIn(doomedFolder);
    const key = freshKey();
    const broken = await openRaw(doomed.port);
    const half = rawPost(key, OPEN, { 'content-length': '8000000', 'content-type': 'application/octet-stream' }, '');
    for (const client of [broken, await openRaw(doomed.port)]) {
      client.write(half);
      client.write(Buffer.alloc(4_000_000));
    }
    const hold = held();
    upstream.behave(hold.behaviour);
    const waiting = freshKey();
    const asked = post(doomed, waiting, { body: randomBytes(3_000_000) }).catch(() => 'broken');
    await reached(upstream, waiting);
    broken.destroy();
    doomed.signal('SIGKILL');
    await doomed.exited;
    hold.release();
    expect(await asked).toBe('broken');
    expect(readdirSync(doomedFolder)).toEqual([]);
  });

  it('a missing folder: 503 for requests that need it, and the process goes on', async () => {
    const lost = await startIn(join(scratchFolder(), 'nowhere'));
    const key = freshKey();
    const reply = await post(lost, key, { type: 'application/octet-stream', body: randomBytes(3_000_000) });
    expectProblem(reply, 503, 'errors/service_unavailable');
    expect(callsOf(upstream, key)).toHaveLength(0);
    expectOriginal(await post(lost, key));
    expect((await lost.stop()).code).toBe(0);
  });
});
