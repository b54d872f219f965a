import type { IncomingMessage } from 'node:http';
import { connect as tcp } from 'node:net';
import { type Listening, listen } from 'headgate-testbed/listen';
import { pause } from 'headgate-testbed/raw-http';
import { afterEach, describe, expect, it } from 'vitest';
import { readAndPutBack } from '../../../src/adapters/node/put-back.ts';

const open: Listening[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

/** Ways to read the body that was put back. */
const READERS: Record<string, (request: IncomingMessage) => Promise<string>> = {
  'listening for data and end': (request) =>
    new Promise((resolve) => {
      let text = '';
      request.on('data', (chunk) => {
        text += chunk;
      });
      request.on('end', () => resolve(text));
    }),
  'iterating over the request': async (request) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    return text;
  },
};

const CHUNKED = 'transfer-encoding: chunked\r\n\r\n';
/** Name, pieces that are sent, and body. */
const SENT: readonly (readonly [string, string[], string])[] = [
  ['no body', ['\r\n'], ''],
  ['a length of 0', ['content-length: 0\r\n\r\n'], ''],
  ['no chunk', [`${CHUNKED}0\r\n\r\n`], ''],
  ['no chunk, with a late end', [CHUNKED, '0\r\n\r\n'], ''],
  ['a body with the head', ['content-length: 2\r\n\r\nok'], 'ok'],
  ['a body that comes late', ['content-length: 4\r\n\r\n', 'ok', 'ok'], 'okok'],
  ['chunks', [`${CHUNKED}2\r\nok\r\n`, '2\r\nok\r\n', '0\r\n\r\n'], 'okok'],
];

describe.each(Object.entries(READERS))('I13: a body that was put back is untouched for a reader %s', (_, read) => {
  it.each(SENT)('%s', async (_what, pieces, body) => {
    for (const isLate of [false, true]) {
      const server = await listen(async (request, response) => {
        await readAndPutBack(request, { maxBytes: 100, idleMs: 30_000 });
        if (isLate) await pause(20);
        response.end(`<${await read(request)}>`);
      });
      open.push(server);
      const socket = tcp(server.port, '127.0.0.1');
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      const [first = '', ...others] = pieces;
      socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${first}`);
      for (const piece of others) {
        await pause(10);
        socket.write(piece);
      }
      await expect.poll(() => text).toMatch(`<${body}>`);
      socket.destroy();
    }
  });
});
