import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CapturedResponse } from 'headgate/gate';
import type { Reply } from 'headgate/http';
import { eventually, openRaw, pause, type RawConnection, rawRequest } from 'headgate-testbed/raw-http';
import { afterEach, describe, expect, it } from 'vitest';
import { createExchange, type Exchange } from '../../src/exchange/exchange.ts';
import { StoredAnswer } from '../../src/proxy/stored-answer.ts';

const WINNER: Reply = { status: 409, headers: { 'content-length': '7' }, body: 'instead' };

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean();
});

/** A response on its way to a real client, with a recording that finishes storing when the test calls `done`. */
async function start({
  method = 'GET',
  maxBytes = 100,
  storeBeforeSending = false,
  instead = undefined as Reply | undefined,
} = {}) {
  const stored: CapturedResponse[] = [];
  let done = () => {};
  const until = new Promise<void>((resolve) => {
    done = resolve;
  });
  const store = async (response: CapturedResponse) => {
    stored.push(response);
    await until;
    return instead;
  };
  let exchange: Exchange | undefined;
  const server = createServer((request, response) => {
    exchange = createExchange('id-1', request, response, false);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const connection: RawConnection = await openRaw((server.address() as AddressInfo).port);
  cleanups.push(() => {
    connection.destroy();
    server.close();
    server.closeAllConnections();
  });
  connection.write(rawRequest(method, '/'));
  const sink = new StoredAnswer(await eventually(() => exchange, 'the request'), {
    maxBytes,
    storeBeforeSending,
    store,
    fail: async () => WINNER,
  });
  const bodyOf = () => connection.received().split('\r\n\r\n').slice(1).join('\r\n\r\n');
  const head = (status: number, fields: string[] = []) => {
    sink.head({ status, reason: undefined, fields });
    sink.flush();
  };
  return { sink, head, stored, done, connection, bodyOf };
}

/** Each piece arrives alone. */
const data = (sink: StoredAnswer, text: string): boolean => {
  const mayGoOn = sink.data(Buffer.from(text));
  return sink.flush() && mayGoOn;
};
const textOf = (response: CapturedResponse | undefined) => response?.body && Buffer.from(response.body).toString();

describe('a response that is stored for retries', () => {
  it('is sent one piece behind, and ends after it is stored', async () => {
    const { sink, head, stored, done, connection, bodyOf } = await start();
    head(201, ['content-length', '3']);
    await eventually(() => connection.received().includes('201'), 'the head');
    for (const text of ['a', 'b', 'c']) data(sink, text);
    await eventually(() => bodyOf() === 'ab', 'all but the last piece');
    sink.end();
    await pause(20);
    expect([bodyOf(), stored.map(textOf)]).toEqual(['ab', ['abc']]);
    done();
    await eventually(() => bodyOf() === 'abc', 'the last piece');
  });

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])(
    'to %s with status %i has no body: it is stored whole, whatever its content-length is, and sent afterwards',
    async (method, status) => {
      const { sink, head, stored, done, connection } = await start({ method });
      const fields = status === 204 ? [] : ['content-length', '1234'];
      head(status, fields);
      sink.end();
      await pause(20);
      expect([stored, connection.received()]).toEqual([[{ status, fields, body: new Uint8Array(0) }], '']);
      done();
      await eventually(() => connection.received().includes(String(status)), 'the head');
    },
  );

  it('I7: is stored without its body if that is not as long as the content-length', async () => {
    const { sink, head, stored } = await start();
    head(200, ['content-length', '5']);
    data(sink, 'abc');
    sink.end();
    expect(stored).toEqual([{ status: 200, fields: ['content-length', '5'], body: undefined, isBroken: true }]);
  });

  it('I7: past the bound its outcome is stored at once, and the rest is streamed', async () => {
    const { sink, head, stored, done, bodyOf } = await start({ maxBytes: 3 });
    head(200, ['content-length', '6']);
    data(sink, 'ab');
    expect(stored).toEqual([]);
    data(sink, 'cd');
    expect(stored.map(({ body }) => body)).toEqual([undefined]);
    sink.end();
    done();
    await eventually(() => bodyOf() === 'abcd', 'the rest');
    expect(stored).toHaveLength(1);
  });

  it('I11: is recorded to its end if the client disconnects', async () => {
    const { sink, head, stored, done, connection } = await start();
    head(200);
    data(sink, 'half ');
    connection.destroy();
    await pause(20);
    data(sink, 'and half');
    sink.end();
    done();
    expect(stored.map(textOf)).toEqual(['half and half']);
  });
});

describe('if another outcome may win, a response', () => {
  it('is not sent before it is stored', async () => {
    const { sink, head, stored, done, connection, bodyOf } = await start({ storeBeforeSending: true });
    head(200, ['content-length', '4']);
    expect([data(sink, 'ab'), data(sink, 'cd')]).toEqual([true, true]);
    sink.end();
    await pause(20);
    expect([connection.received(), stored.map(textOf)]).toEqual(['', ['abcd']]);
    done();
    await eventually(() => bodyOf() === 'abcd', 'the response');
  });

  it('pauses past the bound until its outcome is stored, and is then streamed without delay', async () => {
    const { sink, head, done, bodyOf } = await start({ storeBeforeSending: true, maxBytes: 3 });
    let ready = 0;
    sink.onReady = () => ready++;
    head(200, ['content-length', '6']);
    expect([data(sink, 'ab'), data(sink, 'cd')]).toEqual([true, false]);
    done();
    await eventually(() => bodyOf() === 'abcd', 'the pieces that waited');
    expect(ready).toBe(1);
    data(sink, 'ef');
    await eventually(() => bodyOf() === 'abcdef', 'the rest');
    sink.end();
  });

  it.each(['end', 'breakOff'] as const)('is replaced by the one that won, after its %s', async (ending) => {
    const { sink, head, done, connection } = await start({ storeBeforeSending: true, instead: WINNER });
    done();
    head(200, ['content-length', '4']);
    data(sink, 'abcd');
    sink[ending]();
    expect(await connection.waitFor(1)).toMatchObject([{ status: 409, text: 'instead' }]);
  });

  it('is replaced past the bound, and its rest is discarded', async () => {
    const { sink, head, done, connection } = await start({ storeBeforeSending: true, maxBytes: 3, instead: WINNER });
    done();
    head(200);
    data(sink, 'abcd');
    await connection.waitFor(1);
    expect(data(sink, 'more')).toBe(true);
    sink.end();
    await pause(20);
    expect(connection.replies()).toMatchObject([{ status: 409, text: 'instead' }]);
    expect(connection.received()).not.toMatch(/abcd|more/);
  });

  it('breaks off if a part of it was sent', async () => {
    const { sink, head, done, connection, bodyOf } = await start({ instead: WINNER });
    head(200, ['content-length', '4']);
    for (const text of ['ab', 'cd']) data(sink, text);
    await eventually(() => bodyOf() === 'ab', 'the first piece');
    done();
    sink.end();
    await connection.closed;
    expect(bodyOf()).toBe('ab');
  });
});
