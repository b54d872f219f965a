import {
  type AdapterCase,
  assertEqual,
  chunks,
  deferred,
  limitFields,
  pause,
  readProblem,
  waitUntil,
} from './fixture.ts';

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, i) => i);
const LONG = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251);

function multipart(boundary: string, file: string): { headers: Record<string, string>; body: string } {
  const part = (head: string, body: string): string =>
    `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${body}\r\n`;
  return {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: `${part('name="to"', 'ann')}${part('name="file"; filename="a.txt"', file)}--${boundary}--\r\n`,
  };
}

/** Cases about keys, replays, refusals, and bodies that the handler can still read. */
export const IDEMPOTENCY_CASES: readonly AdapterCase[] = [
  {
    name: 'I4: a replay is the original response, byte for byte and marked; it is neither executed nor charged',
    async run(fixture) {
      const headers = { 'content-type': 'text/x', etag: '"1"', 'x-own': 'a, b' };
      const responses = [
        { status: 201, headers, body: 'made ✓' },
        { status: 200, headers, body: EVERY_BYTE },
        { status: 200, headers, body: chunks('one', EVERY_BYTE, 'two') },
        { status: 200, headers, body: undefined },
        { status: 204, headers: {}, body: undefined },
        { status: 404, headers, body: 'nothing here' },
        { status: 500, headers, body: 'broken' },
      ];
      for (const [index, response] of responses.entries()) {
        fixture.handler = (_, write) => write(response);
        const [first, second] = [await fixture.send({ key: `k${index}` }), await fixture.send({ key: `k${index}` })];
        assertEqual(
          [first.status, first.headers.get('idempotency-replayed'), fixture.runs],
          [response.status, null, index + 1],
        );
        assertEqual([second.status, [...second.bytes]], [first.status, [...first.bytes]]);
        for (const name of ['content-type', 'etag', 'x-own'])
          assertEqual([index, name, second.headers.get(name)], [index, name, first.headers.get(name)]);
        assertEqual([second.headers.get('idempotency-replayed'), limitFields(second)], ['true', {}]);
        assertEqual([limitFields(first)['x-ratelimit-limit'], await fixture.remaining()], ['1000', 999 - index]);
      }
    },
  },
  {
    name: 'I2: another value of a compared field is another request, whatever else is equal',
    async run(fixture) {
      const send = async (headers: Record<string, string>) => fixture.send({ key: 'k', headers });
      fixture.handler = (_, write) => write({ body: 'for ann' });
      assertEqual((await send({ 'x-user': 'ann', cookie: 'a=1; b=2', 'x-other': '1' })).status, 200);
      const again = await send({ 'x-user': 'ann', cookie: 'a=1; b=2', 'x-other': '2' });
      assertEqual([again.text, again.headers.get('idempotency-replayed')], ['for ann', 'true']);
      for (const other of [{ 'x-user': 'bob', cookie: 'a=1; b=2' }, { 'x-user': 'ann', cookie: 'a=1' }, {}]) {
        const refused = await send(other);
        const detail =
          'This idempotency key belongs to another request: the account or a compared field (cookie, x-user) differs. Use a new key for a new request.';
        assertEqual(readProblem(refused), [409, 'errors/already_used']);
        assertEqual(JSON.parse(refused.text).detail, detail);
      }
      assertEqual(fixture.runs, 1);
    },
  },
  {
    name: 'I1: without a key every request is executed',
    async run(fixture) {
      await fixture.send();
      const again = await fixture.send();
      assertEqual([fixture.runs, again.headers.get('idempotency-replayed')], [2, null]);
    },
  },
  {
    name: 'I1: a key in quotes is the same key as without them',
    async run(fixture) {
      await fixture.send({ key: 'k' });
      const again = await fixture.send({ key: '"k"' });
      assertEqual([fixture.runs, again.headers.get('idempotency-replayed')], [1, 'true']);
    },
  },
  {
    name: 'I1: a malformed key is refused with 422, and nothing is executed or charged',
    async run(fixture) {
      for (const key of ['', 'x'.repeat(256), 'é']) {
        assertEqual(readProblem(await fixture.send({ key })), [422, 'errors/unprocessable_entity']);
      }
      assertEqual([fixture.runs, await fixture.remaining()], [0, 1_000]);
      assertEqual((await fixture.send({ key: 'x'.repeat(255) })).status, 200);
    },
  },
  {
    name: 'I2: the key of another request is refused with 409, whatever differs; every application has its own keys',
    async run(fixture) {
      await fixture.send({ key: 'k' });
      for (const other of [
        { body: '{"a":2}' },
        { path: '/things/2' },
        { path: '/things/1?a=1' },
        { method: 'PUT' },
        { headers: { 'content-type': 'text/plain' } },
        { headers: { 'x-account': 'b' } },
      ]) {
        assertEqual(readProblem(await fixture.send({ key: 'k', ...other })), [409, 'errors/already_used']);
      }
      assertEqual([fixture.runs, await fixture.remaining()], [1, 999]);
      const other = await fixture.send({ key: 'k', headers: { 'x-app': 'app_2' } });
      assertEqual([other.headers.get('idempotency-replayed'), fixture.runs], [null, 2]);
    },
  },
  {
    name: 'I3: a multipart request with another boundary is the same request; with another file it is not',
    async run(fixture) {
      fixture.handler = async (request, write) => write({ body: String((await request.body()).length) });
      const first = await fixture.send({ key: 'k', ...multipart('one', 'file') });
      assertEqual([first.status, first.text], [200, String(multipart('one', 'file').body.length)]);
      const again = await fixture.send({ key: 'k', ...multipart('another', 'file') });
      assertEqual([again.headers.get('idempotency-replayed'), again.text, fixture.runs], ['true', first.text, 1]);
      assertEqual((await fixture.send({ key: 'k', ...multipart('one', 'life') })).status, 409);
    },
  },
  {
    name: 'I13: the handler reads the body that was sent, with a key and without',
    async run(fixture) {
      let read: Uint8Array | undefined;
      fixture.handler = async (request, write) => {
        read = await request.body();
        write({ body: 'ok' });
      };
      for (const body of [new Uint8Array(0), EVERY_BYTE, LONG]) {
        for (const key of [undefined, `k${body.length}`]) {
          const headers = { 'content-type': 'application/octet-stream' };
          const reply = await fixture.send({ body, headers, ...(key && { key }) });
          assertEqual([reply.status, read?.length], [200, body.length]);
          assertEqual(
            read?.findIndex((byte, index) => byte !== body[index]),
            -1,
          );
        }
      }
    },
  },
  {
    name: 'I13: a body that is too long is refused with 413, and nothing is executed or charged',
    options: { maxBodyBytes: 1_000 },
    async run(fixture) {
      const body = 'x'.repeat(1_001);
      assertEqual(readProblem(await fixture.send({ key: 'k', body })), [413, 'errors/payload_too_large']);
      assertEqual([fixture.runs, await fixture.remaining()], [0, 1_000]);
      assertEqual((await fixture.send({ key: 'k', body: body.slice(1) })).status, 200);
    },
  },
  {
    name: 'I5: of 50 simultaneous duplicates, one is executed, and all get its response',
    async run(fixture) {
      const mayRespond = deferred();
      fixture.handler = async (_, write) => {
        await mayRespond.promise;
        write({ status: 201, body: 'once' });
      };
      const sent = Array.from({ length: 50 }, () => fixture.send({ key: 'k' }));
      await waitUntil(() => fixture.runs > 0, 'the handler runs');
      await pause();
      mayRespond.resolve();
      const replies = await Promise.all(sent);
      assertEqual(replies.filter(({ status, text }) => status === 201 && text === 'once').length, 50);
      assertEqual(replies.filter(({ headers }) => headers.get('idempotency-replayed') === 'true').length, 49);
      assertEqual([fixture.runs, await fixture.remaining()], [1, 999]);
    },
  },
  {
    name: 'I5: if waiting is switched off, a duplicate gets 409 with retry-after',
    options: { idempotency: { waitMs: 0 } },
    async run(fixture) {
      const mayRespond = deferred();
      fixture.handler = async (_, write) => {
        await mayRespond.promise;
        write({ body: 'ok' });
      };
      const first = fixture.send({ key: 'k' });
      await waitUntil(() => fixture.runs > 0, 'the handler runs');
      const duplicate = await fixture.send({ key: 'k' });
      assertEqual(readProblem(duplicate), [409, 'errors/conflict']);
      assertEqual(Number(duplicate.headers.get('retry-after')) > 0, true);
      mayRespond.resolve();
      assertEqual([(await first).status, fixture.runs], [200, 1]);
    },
  },
  {
    name: "I6: the gate's own 429 releases the key: after retry-after the request is executed",
    options: { limit: ['1/1m'] },
    async run(fixture) {
      await fixture.send({ key: 'first' });
      const rejected = await fixture.send({ key: 'k' });
      assertEqual(readProblem(rejected), [429, 'api/too_many_requests']);
      fixture.clock.advance(Number(rejected.headers.get('retry-after')) * 1_000);
      const retry = await fixture.send({ key: 'k' });
      assertEqual([retry.status, retry.headers.get('idempotency-replayed'), fixture.runs], [200, null, 2]);
    },
  },
  {
    name: "I6, S16: the provider's 429 releases the key",
    async run(fixture) {
      fixture.handler = (_, write) => write({ status: fixture.runs === 1 ? 429 : 200, body: 'ok' });
      assertEqual([(await fixture.send({ key: 'k' })).status, (await fixture.send({ key: 'k' })).status], [429, 200]);
      assertEqual([fixture.runs, await fixture.remaining()], [2, 998]);
    },
  },
  {
    name: 'I7: a response that is too long to store reaches its client, and its request is never executed again',
    options: { idempotency: { maxKeptBytes: 100 } },
    async run(fixture) {
      for (const body of ['x'.repeat(101), LONG, chunks(LONG, LONG)]) {
        const runs = fixture.runs;
        fixture.handler = (_, write) => write({ status: 201, body });
        const [first, second] = [await fixture.send({ key: `k${runs}` }), await fixture.send({ key: `k${runs}` })];
        assertEqual([first.status, first.bytes.length > 100, fixture.runs], [201, true, runs + 1]);
        assertEqual(readProblem(second), [409, 'errors/already_used']);
        assertEqual(/status 201/.test(second.text), true);
      }
    },
  },
  {
    name: 'I4: a session cookie is not replayed, and a replay mark of the handler is removed',
    async run(fixture) {
      const headers = { 'set-cookie': 'session=1', 'Idempotency-Replayed': 'true', 'x-own': '1' };
      fixture.handler = (_, write) => write({ headers, body: 'ok' });
      const [first, second] = [await fixture.send({ key: 'k' }), await fixture.send({ key: 'k' })];
      assertEqual([first.headers.get('set-cookie'), first.headers.get('idempotency-replayed')], ['session=1', null]);
      assertEqual([second.headers.get('set-cookie'), second.headers.get('x-own')], [null, '1']);
    },
  },
  {
    name: 'I4: a streamed response reaches the client while it is written; with a key, one chunk later',
    async run(fixture) {
      for (const key of [undefined, 'k']) {
        const mayRespond = deferred();
        fixture.handler = (_, write) =>
          write({
            body: (async function* () {
              yield* chunks('first ', 'second ');
              await mayRespond.promise;
              yield* chunks('last');
            })(),
          });
        const response = await fixture.fetch(key === undefined ? {} : { key });
        const reader = response.body?.getReader();
        const decoder = new TextDecoder();
        let text = decoder.decode((await reader?.read())?.value);
        assertEqual(text.startsWith('first '), true);
        mayRespond.resolve();
        for (;;) {
          const chunk = await reader?.read();
          if (chunk?.done !== false) break;
          text += decoder.decode(chunk.value);
        }
        assertEqual(text, 'first second last');
      }
      assertEqual((await fixture.send({ key: 'k' })).text, 'first second last');
    },
  },
];
