import { pause } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { fieldOfBody, idempotentRequest } from '../../../src/adapters/fetch.ts';
import { isBodyError } from '../../../src/http/index.ts';
import { fingerprintValue } from '../../support/fingerprint-value.ts';
import { keyedWeb, postOf } from '../../support/keyed-web.ts';

const keyed = (request: Request, options = {}) => idempotentRequest(request, { scope: 's', ...options });

/** The fingerprint of a request with this URL and type. */
async function printOf(url: string, headers: Record<string, string> = {}) {
  const found = await keyed(new Request(url, { headers: { 'idempotency-key': 'k', ...headers } }));
  return fingerprintValue(found);
}

/** A body that comes in these pieces; `error` breaks it off. */
function pieces(...all: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await pause(1);
      const piece = all.shift();
      if (piece === undefined) return controller.close();
      if (piece === 'error') return controller.error(new Error('gone'));
      controller.enqueue(new TextEncoder().encode(piece));
    },
  });
}

const streamed = (body: ReadableStream, headers = {}) => postOf({ body, headers, duplex: 'half' } as RequestInit);

describe('I1: the key', () => {
  it('is optional, and is rejected if it is empty, too long or not ASCII', async () => {
    expect(await keyed(new Request('http://x/'))).toBeUndefined();
    expect(await keyed(postOf())).toMatchObject({ scope: 's', key: 'k' });
    for (const key of ['', 'x'.repeat(256), 'é']) {
      expect(await keyed(postOf({ headers: { 'idempotency-key': key } }))).toHaveProperty('detail');
    }
  });

  it('is rejected if it is given twice or looks like it; a comma without a space is allowed', async () => {
    const twice = new Headers([
      ['idempotency-key', 'a'],
      ['idempotency-key', 'b'],
    ]);
    expect(await keyed(new Request('http://x/', { headers: twice }))).toHaveProperty('detail');
    expect(await keyed(postOf({ headers: { 'idempotency-key': 'a,b' } }))).toHaveProperty('key', 'a,b');
  });

  it('is rejected with two content types; a comma in quotes does not make two', async () => {
    const typed = (type: string) => keyed(postOf({ headers: { 'content-type': type } }));
    expect(await typed('text/plain, application/json')).toHaveProperty('detail');
    expect(await typed('text/plain; a="b,c"')).toHaveProperty('key');
  });
});

describe('I3: the request', () => {
  it('is identified by path and query exactly as in the URL', async () => {
    const values = await Promise.all(
      ['http://x/a', 'http://x/a?', 'http://x/a?b', 'http://x/%61', 'http://x/', 'http://x/a?b=/c'].map((url) =>
        printOf(url),
      ),
    );
    expect(new Set(values).size).toBe(6);
    // The server's name and the fragment are not part of it.
    expect(await printOf('https://other:8443/a?b#c')).toBe(values[2]);
  });

  it('is identified by its body, whatever pieces it comes in', async () => {
    const first = (await keyed(streamed(pieces('{"a":', '1}')))) as { fingerprint: { value: string } };
    const second = (await keyed(postOf())) as { fingerprint: { value: string } };
    expect(await fingerprintValue(first)).toBe(await fingerprintValue(second));
  });
});

describe('I13: the body', () => {
  it('is untouched for the handler, however the handler reads it', async () => {
    const form = new FormData();
    form.set('to', 'ann');
    form.set('file', new Blob(['bytes']), 'a.txt');
    const multipart = new Request('http://x/', { method: 'POST', body: form });
    const ways: [
      ConstructorParameters<typeof Response>[0],
      Record<string, string>,
      (request: Request) => Promise<unknown>,
      unknown,
    ][] = [
      ['{"a":1}', {}, (request) => request.json(), { a: 1 }],
      ['text', {}, (request) => request.text(), 'text'],
      [pieces('one ', 'two'), {}, (request) => request.text(), 'one two'],
      ['abc', {}, async (request) => (await request.arrayBuffer()).byteLength, 3],
      ['abc', {}, async (request) => (await (request.clone() as Request).blob()).size, 3],
      ['abc', {}, async (request) => (await request.body?.getReader().read())?.value?.length, 3],
      [
        await multipart.arrayBuffer(),
        { 'content-type': multipart.headers.get('content-type') as string },
        async (request) => {
          const read = await request.formData();
          return [read.get('to'), await (read.get('file') as File).text()];
        },
        ['ann', 'bytes'],
      ],
      [null, {}, async (request) => request.body, null],
    ];
    for (const [body, headers, read, expected] of ways) {
      const web = keyedWeb(async (request) => Response.json(await read(request)), {
        gate: { account: (request) => (body === '{"a":1}' ? fieldOfBody(request, 'b').catch(() => 'a') : 'a') },
      });
      const response = await web.post({ body, headers, duplex: 'half' } as RequestInit);
      expect(await response.json()).toEqual(expected);
    }
  });

  it.each<[string, () => Request, object, number, string]>([
    [
      'its content-length is too long',
      () => postOf({ headers: { 'content-length': '11' } }),
      { maxBytes: 10 },
      413,
      'too_large',
    ],
    ['it is too long', () => postOf({ body: 'x'.repeat(11) }), { maxBytes: 10 }, 413, 'too_large'],
    [
      'it is too long in pieces',
      () => streamed(pieces('x'.repeat(6), 'x'.repeat(6))),
      { maxBytes: 10 },
      413,
      'too_large',
    ],
    ['it breaks off', () => streamed(pieces('x', 'error')), {}, 400, 'aborted'],
    ['it stalls', () => streamed(new ReadableStream()), { idleMs: 5 }, 408, 'stalled'],
    [
      'it is malformed',
      () => postOf({ headers: { 'content-type': 'multipart/form-data; boundary=b' } }),
      {},
      422,
      'malformed_multipart',
    ],
  ])('is rejected if %s', async (_what, make, options, status, reason) => {
    const error = await Promise.resolve(keyed(make(), options)).catch((thrown: unknown) => thrown);
    expect([isBodyError(error), error]).toMatchObject([true, { status, reason }]);
  });

  it('is a mistake of the program (500) if other code has read or locked it', async () => {
    const used = postOf();
    await used.text();
    await expect(keyed(used)).rejects.toMatchObject({ status: 500, reason: 'already_read' });
    const held = postOf();
    held.body?.getReader();
    await expect(keyed(held)).rejects.toMatchObject({ status: 500, reason: 'already_read' });
  });

  it('is read to its end and discarded, without being buffered, if it is too long', async () => {
    let made = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (++made > 500) return controller.close();
        controller.enqueue(new Uint8Array(1_000));
      },
    });
    const request = streamed(body);
    await expect(keyed(request, { maxBytes: 10 })).rejects.toMatchObject({ status: 413 });
    await expect.poll(() => made).toBe(501);
  });

  it('is read once for two resolvers, each with its own limit', async () => {
    const request = postOf({ body: '{"account_id":"acc_1"}' });
    const [account, found] = await Promise.all([fieldOfBody(request, 'account_id'), keyed(request)]);
    expect([account, found]).toMatchObject(['acc_1', { key: 'k' }]);
    await expect(fieldOfBody(request, 'account_id', { maxBytes: 3 })).rejects.toMatchObject({ status: 413 });
    expect(await request.json()).toEqual({ account_id: 'acc_1' });
  });
});
