import { type AdapterCase, type AdapterFixture, assertEqual, chunks, deferred, pause, waitUntil } from './fixture.ts';

/** An HTTP/1 connection on which a case sends exact bytes. */
interface RawConnection {
  readonly socket: import('node:net').Socket;
  received(): string;
}

async function connectAndSend(fixture: AdapterFixture, ...requests: string[]): Promise<RawConnection> {
  // Imported here, so that the other cases run in runtimes without sockets.
  const { connect } = await import('node:net');
  const socket = connect(fixture.port ?? 0, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => {});
  socket.write(requests.join(''));
  return { socket, received: () => text };
}

function request(headers: string, body = '{"a":1}', length = body.length): string {
  const common = `host: x\r\nx-account: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n`;
  return `POST /things/1 HTTP/1.1\r\n${common}${headers}\r\n${body}`;
}

/** Cases about the behaviour of connections. */
export const SOCKET_CASES: readonly AdapterCase[] = [
  {
    name: 'S19: of five pipelined requests, a limit of three accepts three, each with its own count',
    needs: 'HTTP/1',
    options: { limit: ['3/1m'] },
    async run(fixture) {
      const connection = await connectAndSend(fixture, request('').repeat(5));
      const heads = (): string[] => connection.received().match(/HTTP\/1\.1 \d{3}[^{]*?\r\n\r\n/g) ?? [];
      await waitUntil(() => heads().length === 5, 'five responses');
      connection.socket.destroy();
      const matches = (pattern: RegExp) => heads().map((head) => pattern.exec(head)?.[1]);
      assertEqual(matches(/ (\d{3})/), ['200', '200', '200', '429', '429']);
      assertEqual(matches(/x-ratelimit-remaining: (\d+)/i), ['2', '1', '0', '0', '0']);
    },
  },
  {
    name: 'I1: a key that is given twice is refused with 422',
    needs: 'HTTP/1',
    async run(fixture) {
      const connection = await connectAndSend(fixture, request('idempotency-key: a\r\nidempotency-key: b\r\n'));
      await waitUntil(() => connection.received().includes('\r\n\r\n'), 'the response');
      connection.socket.destroy();
      assertEqual([connection.received().slice(9, 12), fixture.runs], ['422', 0]);
    },
  },
  {
    name: 'I11: a client disconnects before the response: the response is stored, and a retry gets it',
    needs: 'a connection',
    async run(fixture) {
      const mayRespond = deferred();
      fixture.handler = async (_, write) => {
        await mayRespond.promise;
        write({ status: 201, body: 'done all the same' });
      };
      const client = new AbortController();
      const first = fixture.send({ key: 'k', signal: client.signal });
      await waitUntil(() => fixture.runs === 1, 'the handler runs');
      await disconnect(client, first);
      mayRespond.resolve();
      const retry = await fixture.send({ key: 'k' });
      assertEqual([retry.status, retry.text, fixture.runs], [201, 'done all the same', 1]);
    },
  },
  {
    name: 'S13: a client disconnects before the response: finalCost still settles the charge',
    needs: 'a connection',
    options: { finalCost: ({ header }) => Number(header('x-cost')) },
    async run(fixture) {
      const mayRespond = deferred();
      fixture.handler = async (_, write) => {
        await mayRespond.promise;
        write({ status: 200, headers: { 'x-cost': '100' }, body: 'done all the same' });
      };
      const client = new AbortController();
      const first = fixture.send({ signal: client.signal });
      await waitUntil(() => fixture.runs === 1, 'the handler runs');
      await disconnect(client, first);
      mayRespond.resolve();
      await waitUntil(async () => (await fixture.remaining()) === 900, '900 remain');
    },
  },
  {
    name: 'I11: a client disconnects in the middle of a streamed response: the whole response is stored',
    needs: 'a connection',
    async run(fixture) {
      const mayRespond = deferred();
      fixture.handler = (_, write) =>
        write({
          status: 201,
          body: (async function* () {
            yield* chunks('one ', 'two ');
            await mayRespond.promise;
            yield* chunks('three ', 'four');
          })(),
        });
      const client = new AbortController();
      const first = await fixture.fetch({ key: 'k', signal: client.signal });
      const reader = first.body?.getReader();
      assertEqual(new TextDecoder().decode((await reader?.read())?.value).slice(0, 3), 'one');
      await disconnect(client, reader?.read());
      mayRespond.resolve();
      const retry = await fixture.send({ key: 'k' });
      assertEqual([retry.status, retry.text, fixture.runs], [201, 'one two three four', 1]);
    },
  },
  {
    name: 'I13: a client disconnects in the middle of its body: nothing is executed, charged or claimed',
    needs: 'a connection',
    async run(fixture) {
      if (fixture.has('HTTP/1')) {
        const connection = await connectAndSend(fixture, request('idempotency-key: k\r\n', '{"a":', 7));
        await pause();
        connection.socket.destroy();
        await pause();
      } else {
        const client = new AbortController();
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => controller.enqueue(new TextEncoder().encode('{"a":')),
        });
        const first = fixture.send({ key: 'k', body, signal: client.signal });
        await pause();
        await disconnect(client, first);
      }
      assertEqual([fixture.runs, await fixture.remaining()], [0, 1_000]);
      assertEqual([(await fixture.send({ key: 'k' })).status, fixture.runs], [200, 1]);
    },
  },
  {
    name: 'a client that does not read slows the handler down, with a key and without',
    needs: 'a connection',
    options: { idempotency: { maxKeptBytes: 1_000 } },
    async run(fixture) {
      const chunk = new Uint8Array(65_536);
      const total = 1_024;
      for (const key of [undefined, 'k']) {
        let written = 0;
        let last = total;
        fixture.handler = (_, write) =>
          write({
            body: (async function* () {
              while (written < last) {
                written++;
                yield chunk;
              }
            })(),
          });
        const response = await fixture.fetch(key === undefined ? {} : { key });
        await waitUntil(() => written > 0, 'the response begins');
        await pause(200);
        assertEqual(written < total / 2, true);
        last = written + 16;
        assertEqual(await lengthOf(response), last * chunk.length);
      }
    },
  },
];

/** How many bytes the body has; they are counted and not stored. */
async function lengthOf(response: Response): Promise<number> {
  let length = 0;
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) length += read.value.length;
  return length;
}

/** Disconnects a client, and gives the server time to notice it. */
async function disconnect(client: AbortController, pending: Promise<unknown> | undefined): Promise<void> {
  client.abort();
  assertEqual(await pending?.then(Boolean, () => 'broken off'), 'broken off');
  await pause();
}
