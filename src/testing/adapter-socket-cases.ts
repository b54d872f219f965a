import { type AdapterCase, type AdapterWorld, equal, pause, pieces, signal, until } from './adapter-world.ts';

/** A connection of HTTP/1 that says exactly what the case says. */
interface Line {
  readonly socket: import('node:net').Socket;
  received(): string;
}

async function dial(world: AdapterWorld, ...said: string[]): Promise<Line> {
  // Only here, so that what needs no socket runs where there are none.
  const { connect } = await import('node:net');
  const socket = connect(world.port ?? 0, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => {});
  socket.write(said.join(''));
  return { socket, received: () => text };
}

function request(headers: string, body = '{"a":1}', length = body.length): string {
  const common = `host: x\r\nx-account: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n`;
  return `POST /things/1 HTTP/1.1\r\n${common}${headers}\r\n${body}`;
}

/** What shows on connections only. */
export const SOCKET_CASES: readonly AdapterCase[] = [
  {
    name: 'S19: of five pipelined requests three pass a limit of three, each with its own count',
    needs: 'HTTP/1',
    options: { limit: ['3/1m'] },
    async run(world) {
      const line = await dial(world, request('').repeat(5));
      const heads = (): string[] => line.received().match(/HTTP\/1\.1 \d{3}[^{]*?\r\n\r\n/g) ?? [];
      await until(() => heads().length === 5, 'five answers');
      line.socket.destroy();
      const told = (pattern: RegExp) => heads().map((head) => pattern.exec(head)?.[1]);
      equal(told(/ (\d{3})/), ['200', '200', '200', '429', '429']);
      equal(told(/x-ratelimit-remaining: (\d+)/i), ['2', '1', '0', '0', '0']);
    },
  },
  {
    name: 'I1: a key that is given twice is refused with 422',
    needs: 'HTTP/1',
    async run(world) {
      const line = await dial(world, request('idempotency-key: a\r\nidempotency-key: b\r\n'));
      await until(() => line.received().includes('\r\n\r\n'), 'the answer');
      line.socket.destroy();
      equal([line.received().slice(9, 12), world.runs], ['422', 0]);
    },
  },
  {
    name: 'I11: a client that goes before the answer: the answer is kept, and its retry gets it',
    needs: 'a connection',
    async run(world) {
      const go = signal();
      world.handler = async (_, write) => {
        await go.given;
        write({ status: 201, body: 'done all the same' });
      };
      const client = new AbortController();
      const first = world.ask({ key: 'k', signal: client.signal });
      await until(() => world.runs === 1, 'the handler runs');
      await gone(client, first);
      go.give();
      const retry = await world.ask({ key: 'k' });
      equal([retry.status, retry.text, world.runs], [201, 'done all the same', 1]);
    },
  },
  {
    name: 'I11: a client that goes in the middle of a streamed answer: it is kept whole',
    needs: 'a connection',
    async run(world) {
      const go = signal();
      world.handler = (_, write) =>
        write({
          status: 201,
          body: (async function* () {
            yield* pieces('one ', 'two ');
            await go.given;
            yield* pieces('three ', 'four');
          })(),
        });
      const client = new AbortController();
      const first = await world.open({ key: 'k', signal: client.signal });
      const reader = first.body?.getReader();
      equal(new TextDecoder().decode((await reader?.read())?.value).slice(0, 3), 'one');
      await gone(client, reader?.read());
      go.give();
      const retry = await world.ask({ key: 'k' });
      equal([retry.status, retry.text, world.runs], [201, 'one two three four', 1]);
    },
  },
  {
    name: 'I13: a client that goes in the middle of its body: nothing is executed, charged or claimed',
    needs: 'a connection',
    async run(world) {
      if (world.has('HTTP/1')) {
        const line = await dial(world, request('idempotency-key: k\r\n', '{"a":', 7));
        await pause();
        line.socket.destroy();
        await pause();
      } else {
        const client = new AbortController();
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => controller.enqueue(new TextEncoder().encode('{"a":')),
        });
        const first = world.ask({ key: 'k', body, signal: client.signal });
        await pause();
        await gone(client, first);
      }
      equal([world.runs, await world.remaining()], [0, 1_000]);
      equal([(await world.ask({ key: 'k' })).status, world.runs], [200, 1]);
    },
  },
  {
    name: 'a client that does not read slows the handler down, with a key and without',
    needs: 'a connection',
    options: { idempotency: { maxKeptBytes: 1_000 } },
    async run(world) {
      const chunk = new Uint8Array(65_536);
      const total = 1_024;
      for (const key of [undefined, 'k']) {
        let made = 0;
        world.handler = (_, write) =>
          write({
            body: (async function* () {
              while (made < total) {
                made++;
                yield chunk;
              }
            })(),
          });
        const answer = await world.open(key === undefined ? {} : { key });
        await until(() => made > 0, 'the answer begins');
        await pause(200);
        equal(made < total / 2, true);
        equal((await answer.arrayBuffer()).byteLength, total * chunk.length);
      }
    },
  },
];

/** Lets a client go, and gives the server time to see it. */
async function gone(client: AbortController, waitsFor: Promise<unknown> | undefined): Promise<void> {
  client.abort();
  equal(await waitsFor?.then(Boolean, () => 'broken off'), 'broken off');
  await pause();
}
