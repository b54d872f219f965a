import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { isBodyError } from 'headgate/http';
import { bytesOf, field, file, inChunks, multipart, multipartType } from 'headgate-testbed/bodies';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ReadBody, type ReadBodyOptions, readBody } from '../../src/body/read-body.ts';
import { makeFingerprint } from '../support/fingerprint-of.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'headgate-body-test-'));
});
afterEach(() => {
  expect(readdirSync(directory)).toEqual([]);
  rmSync(directory, { recursive: true });
});

const HEAD = { method: 'POST', path: '/api/v1/emails', query: undefined };
const take = (
  body: Uint8Array | string,
  contentType: string,
  options: Partial<ReadBodyOptions> = {},
): Promise<ReadBody> =>
  readBody(Readable.from(inChunks(bytesOf(body))), {
    head: { ...HEAD, contentType },
    maxBytes: 30_000_000,
    directory,
    ...options,
  });
const reasonOf = async (taken: Promise<ReadBody>): Promise<string> =>
  taken.then(
    () => 'none',
    (error: unknown) => (isBodyError(error) ? `${error.status} ${error.reason}` : String(error)),
  );

describe('readBody', () => {
  it('I3, I13: stores, fingerprints and searches a body in one pass, and keeps its bytes unchanged', async () => {
    const attachment = Buffer.alloc(3_000_000, '0123456789');
    const body = multipart({
      boundary: 'b',
      parts: [file('attachments', 'a', attachment), field('account_id', 'acc_1')],
    });
    const taken = await take(body, multipartType('b'), { field: 'account_id', fingerprint: { secret: 's' } });
    expect(taken.field).toBe('acc_1');
    expect(taken.body.isOnDisk).toBe(true);
    expect((await buffer(taken.body.open())).equals(body)).toBe(true);
    expect(taken.fingerprint(taken.field)).toEqual(
      makeFingerprint(body, multipartType('b'), { account: 'acc_1', secret: 's', lengths: [777] }),
    );
    await taken.body.dispose();
  });

  it('only stores the body if nothing else is asked for', async () => {
    const { body, field: value, fingerprint } = await take('{"a":', 'application/json');
    expect(value).toBeUndefined();
    expect(fingerprint()).toBeUndefined();
    expect((await buffer(body.open())).toString()).toBe('{"a":');
    await body.dispose();
  });

  it('makes a fingerprint of malformed JSON, but finds no account in it', async () => {
    const taken = await take('{"a":', 'application/json', { fingerprint: {} });
    expect(taken.fingerprint()?.value).toBeDefined();
    await taken.body.dispose();
    expect(await reasonOf(take('{"a":', 'application/json', { field: 'a' }))).toBe('422 malformed_json');
  });

  it.each([
    ['422 unsupported_type', 'x', 'text/plain', { field: 'a' }],
    ['422 malformed_multipart', '--b\r\n', multipartType('b'), { fingerprint: {} }],
    ['422 malformed_multipart', '--b\r\n\r\n', 'multipart/form-data', { fingerprint: {} }],
    ['422 too_many_parts', '--b\r\n\r\n\r\n'.repeat(10_000), multipartType('b'), { fingerprint: {} }],
    ['422 part_headers_too_large', `--b\r\nA: ${'x'.repeat(1_048_576)}`, multipartType('b'), { fingerprint: {} }],
    ['422 too_deep', '['.repeat(100), 'application/json', { fingerprint: {} }],
    ['422 field_missing', '{}', 'application/json', { field: 'a' }],
    ['413 too_large', 'x'.repeat(11), 'text/plain', { fingerprint: {}, maxBytes: 10 }],
  ])('fails with %s, and frees everything', async (reason, body, type, options) => {
    expect(await reasonOf(take(body, type, { memoryBytes: 0, ...options }))).toBe(reason);
  });

  it('fails before it reads if the media type cannot have the account', async () => {
    const source = new Readable({
      read() {
        throw new Error('read');
      },
    });
    const taken = readBody(source, { head: HEAD, maxBytes: 10, field: 'account_id' });
    expect(await reasonOf(taken)).toBe('422 unsupported_type');
  });
});
