import { type AdapterCase, equal, limitFields, pause, pieces, problemOf, signal, until } from './adapter-world.ts';

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

/** Keys, replays and refusals, and bodies that stay readable. */
export const IDEMPOTENCY_CASES: readonly AdapterCase[] = [
  {
    name: 'I4: a replay is the original, byte for byte, marked, and neither executed nor charged',
    async run(world) {
      const headers = { 'content-type': 'text/x', etag: '"1"', 'x-own': 'a, b' };
      const answers = [
        { status: 201, headers, body: 'made ✓' },
        { status: 200, headers, body: EVERY_BYTE },
        { status: 200, headers, body: pieces('one', EVERY_BYTE, 'two') },
        { status: 200, headers, body: undefined },
        { status: 204, headers: {}, body: undefined },
        { status: 404, headers, body: 'nothing here' },
        { status: 500, headers, body: 'broken' },
      ];
      for (const [index, answer] of answers.entries()) {
        world.handler = (_, write) => write(answer);
        const [first, second] = [await world.ask({ key: `k${index}` }), await world.ask({ key: `k${index}` })];
        equal([first.status, first.headers.get('idempotency-replayed'), world.runs], [answer.status, null, index + 1]);
        equal([second.status, [...second.bytes]], [first.status, [...first.bytes]]);
        for (const name of ['content-type', 'etag', 'x-own'])
          equal([index, name, second.headers.get(name)], [index, name, first.headers.get(name)]);
        equal([second.headers.get('idempotency-replayed'), limitFields(second)], ['true', {}]);
        equal([limitFields(first)['x-ratelimit-limit'], await world.remaining()], ['1000', 999 - index]);
      }
    },
  },
  {
    name: 'I1: without a key every request is executed',
    async run(world) {
      await world.ask();
      const again = await world.ask();
      equal([world.runs, again.headers.get('idempotency-replayed')], [2, null]);
    },
  },
  {
    name: 'I1: a key that is none is refused with 422, and nothing is executed or charged',
    async run(world) {
      for (const key of ['', 'x'.repeat(256), 'é']) {
        equal(problemOf(await world.ask({ key })), [422, 'errors/unprocessable_entity']);
      }
      equal([world.runs, await world.remaining()], [0, 1_000]);
      equal((await world.ask({ key: 'x'.repeat(255) })).status, 200);
    },
  },
  {
    name: 'I2: the key of another request is refused with 409, whatever differs; another application has its own keys',
    async run(world) {
      await world.ask({ key: 'k' });
      for (const other of [
        { body: '{"a":2}' },
        { path: '/things/2' },
        { path: '/things/1?a=1' },
        { method: 'PUT' },
        { headers: { 'content-type': 'text/plain' } },
        { headers: { 'x-account': 'b' } },
      ]) {
        equal(problemOf(await world.ask({ key: 'k', ...other })), [409, 'errors/already_used']);
      }
      equal([world.runs, await world.remaining()], [1, 999]);
      const other = await world.ask({ key: 'k', headers: { 'x-app': 'app_2' } });
      equal([other.headers.get('idempotency-replayed'), world.runs], [null, 2]);
    },
  },
  {
    name: 'I3: a multipart request that is sent again with another boundary is the same, with another file it is not',
    async run(world) {
      world.handler = async (request, write) => write({ body: String((await request.body()).length) });
      const first = await world.ask({ key: 'k', ...multipart('one', 'file') });
      equal([first.status, first.text], [200, String(multipart('one', 'file').body.length)]);
      const again = await world.ask({ key: 'k', ...multipart('another', 'file') });
      equal([again.headers.get('idempotency-replayed'), again.text, world.runs], ['true', first.text, 1]);
      equal((await world.ask({ key: 'k', ...multipart('one', 'life') })).status, 409);
    },
  },
  {
    name: 'I13: the handler reads the body that was sent, with a key and without',
    async run(world) {
      let read: Uint8Array | undefined;
      world.handler = async (request, write) => {
        read = await request.body();
        write({ body: 'ok' });
      };
      for (const body of [new Uint8Array(0), EVERY_BYTE, LONG]) {
        for (const key of [undefined, `k${body.length}`]) {
          const headers = { 'content-type': 'application/octet-stream' };
          const reply = await world.ask({ body, headers, ...(key && { key }) });
          equal([reply.status, read?.length], [200, body.length]);
          equal(
            read?.findIndex((byte, index) => byte !== body[index]),
            -1,
          );
        }
      }
    },
  },
  {
    name: 'I13: a body over the bound is answered 413, and nothing is executed or charged',
    options: { maxBodyBytes: 1_000 },
    async run(world) {
      const body = 'x'.repeat(1_001);
      equal(problemOf(await world.ask({ key: 'k', body })), [413, 'errors/payload_too_large']);
      equal([world.runs, await world.remaining()], [0, 1_000]);
      equal((await world.ask({ key: 'k', body: body.slice(1) })).status, 200);
    },
  },
  {
    name: 'I5: of 50 duplicates at once one is executed, and all get its answer',
    async run(world) {
      const go = signal();
      world.handler = async (_, write) => {
        await go.given;
        write({ status: 201, body: 'once' });
      };
      const asked = Array.from({ length: 50 }, () => world.ask({ key: 'k' }));
      await until(() => world.runs > 0, 'the handler runs');
      await pause();
      go.give();
      const replies = await Promise.all(asked);
      equal(replies.filter(({ status, text }) => status === 201 && text === 'once').length, 50);
      equal(replies.filter(({ headers }) => headers.get('idempotency-replayed') === 'true').length, 49);
      equal([world.runs, await world.remaining()], [1, 999]);
    },
  },
  {
    name: 'I5: where waiting is switched off a duplicate gets 409 with retry-after',
    options: { idempotency: { waitMs: 0 } },
    async run(world) {
      const go = signal();
      world.handler = async (_, write) => {
        await go.given;
        write({ body: 'ok' });
      };
      const first = world.ask({ key: 'k' });
      await until(() => world.runs > 0, 'the handler runs');
      const duplicate = await world.ask({ key: 'k' });
      equal(problemOf(duplicate), [409, 'errors/conflict']);
      equal(Number(duplicate.headers.get('retry-after')) > 0, true);
      go.give();
      equal([(await first).status, world.runs], [200, 1]);
    },
  },
  {
    name: 'I6: our own 429 gives the key back: after retry-after it is executed',
    options: { limit: ['1/1m'] },
    async run(world) {
      await world.ask({ key: 'first' });
      const rejected = await world.ask({ key: 'k' });
      equal(problemOf(rejected), [429, 'api/too_many_requests']);
      world.clock.advance(Number(rejected.headers.get('retry-after')) * 1_000);
      const retry = await world.ask({ key: 'k' });
      equal([retry.status, retry.headers.get('idempotency-replayed'), world.runs], [200, null, 2]);
    },
  },
  {
    name: "I6, S16: the provider's 429 gives the key back",
    async run(world) {
      world.handler = (_, write) => write({ status: world.runs === 1 ? 429 : 200, body: 'ok' });
      equal([(await world.ask({ key: 'k' })).status, (await world.ask({ key: 'k' })).status], [429, 200]);
      equal([world.runs, await world.remaining()], [2, 998]);
    },
  },
  {
    name: 'I7: an answer too long to keep reaches its client, and is never executed again',
    options: { idempotency: { maxKeptBytes: 100 } },
    async run(world) {
      for (const body of ['x'.repeat(101), LONG, pieces(LONG, LONG)]) {
        const runs = world.runs;
        world.handler = (_, write) => write({ status: 201, body });
        const [first, second] = [await world.ask({ key: `k${runs}` }), await world.ask({ key: `k${runs}` })];
        equal([first.status, first.bytes.length > 100, world.runs], [201, true, runs + 1]);
        equal(problemOf(second), [409, 'errors/already_used']);
        equal(/status 201/.test(second.text), true);
      }
    },
  },
  {
    name: 'I4: a session is not replayed, nor a mark that the handler forged',
    async run(world) {
      const headers = { 'set-cookie': 'session=1', 'Idempotency-Replayed': 'true', 'x-own': '1' };
      world.handler = (_, write) => write({ headers, body: 'ok' });
      const [first, second] = [await world.ask({ key: 'k' }), await world.ask({ key: 'k' })];
      equal([first.headers.get('set-cookie'), first.headers.get('idempotency-replayed')], ['session=1', null]);
      equal([second.headers.get('set-cookie'), second.headers.get('x-own')], [null, '1']);
    },
  },
  {
    name: 'I4: a streamed answer reaches the client while it is made, with a key one piece behind',
    async run(world) {
      for (const key of [undefined, 'k']) {
        const go = signal();
        world.handler = (_, write) =>
          write({
            body: (async function* () {
              yield* pieces('first ', 'second ');
              await go.given;
              yield* pieces('last');
            })(),
          });
        const response = await world.open(key === undefined ? {} : { key });
        const reader = response.body?.getReader();
        const decoder = new TextDecoder();
        let text = decoder.decode((await reader?.read())?.value);
        equal(text.startsWith('first '), true);
        go.give();
        for (;;) {
          const piece = await reader?.read();
          if (piece?.done !== false) break;
          text += decoder.decode(piece.value);
        }
        equal(text, 'first second last');
      }
      equal((await world.ask({ key: 'k' })).text, 'first second last');
    },
  },
];
