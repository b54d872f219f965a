import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually, openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createExchange, type Exchange } from '../../src/exchange/exchange.ts';
import { type AnswerSink, StreamedAnswer } from '../../src/proxy/answer-sink.ts';
import { StoredAnswer } from '../../src/proxy/stored-answer.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean();
});

/** By name; `maxBytes` is the most that is stored. */
const SINKS: Record<string, (exchange: Exchange, maxBytes?: number) => AnswerSink> = {
  streamed: (exchange) => new StreamedAnswer(exchange),
  stored: (exchange, maxBytes = 10_000_000) =>
    new StoredAnswer(exchange, {
      maxBytes,
      storeBeforeSending: false,
      store: async () => undefined,
      fail: () => Promise.reject(),
    }),
};

/** A response on its way to a real client, and how often something was written to it. */
async function start(create: (exchange: Exchange) => AnswerSink, length: number) {
  let exchange: Exchange | undefined;
  const server = createServer((request, response) => {
    exchange = createExchange('id-1', request, response, false);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const connection = await openRaw((server.address() as AddressInfo).port);
  cleanups.push(() => {
    connection.destroy();
    server.close();
    server.closeAllConnections();
  });
  connection.write(rawRequest('GET', '/'));
  const { response } = await eventually(() => exchange, 'the request');
  const write = vi.spyOn(response, 'write');
  const sink = create(exchange as Exchange);
  sink.head({ status: 200, reason: undefined, fields: ['content-length', String(length)] });
  return { sink, response, connection, writes: () => write.mock.calls.length };
}

const digits = (length: number) => Array.from({ length }, (_, i) => Buffer.from(String(i % 10)));
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe.each(Object.entries(SINKS))('a response that is %s, in pieces of one byte', (name, create) => {
  it('arrives whole, and one piece after the other', async () => {
    const pieces = digits(50);
    const { sink, connection } = await start(create, pieces.length);
    for (const [i, piece] of pieces.entries()) {
      sink.data(piece);
      sink.flush();
      // A response that is stored is sent one piece behind.
      const sent = Buffer.concat(pieces.slice(0, name === 'stored' ? i : i + 1)).toString();
      await eventually(() => connection.received().endsWith(`\r\n\r\n${sent}`), `piece ${i}`);
    }
    sink.end();
    await eventually(() => connection.received().endsWith(Buffer.concat(pieces).toString()), 'the end');
  });

  it('takes up little memory if its client does not read', async () => {
    const pieces = digits(20_000_000 / 10);
    const { sink, response, connection, writes } = await start(create, pieces.length);
    connection.socket.pause();
    let isPaused = false;
    sink.onReady = () => {
      isPaused = false;
    };
    for (const [i, piece] of pieces.entries()) {
      isPaused = !sink.data(piece) || isPaused;
      // As many as one read from the upstream can have.
      if (i % 10_000 !== 9_999) continue;
      isPaused = !sink.flush() || isPaused;
      await turn();
      if (!isPaused) continue;
      connection.socket.resume();
      await eventually(() => !isPaused, 'the client has read');
      connection.socket.pause();
    }
    expect(response.writableLength).toBeLessThan(200_000);
    // Each write costs some hundred bytes while it waits.
    expect(writes()).toBeLessThan(pieces.length / 200);
    sink.end();
    connection.socket.resume();
    await eventually(() => connection.received().length > pieces.length, 'the end');
    expect(connection.received().split('\r\n\r\n')[1]).toBe(Buffer.concat(pieces).toString());
  });

  it('I7: arrives whole if its last piece and its end come together', async () => {
    const { sink, connection } = await start((exchange) => create(exchange, 10_000), 20_004);
    // More than is stored, if it is stored.
    sink.data(Buffer.alloc(20_000, 'x'));
    await eventually(() => connection.received().endsWith('xxxx'), 'the first piece');
    sink.data(Buffer.from('last'));
    sink.end();
    await eventually(() => connection.received().endsWith('xlast'), 'the last piece');
  });
});
