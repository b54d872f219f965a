// The upstream of the topic gateway, as light as possible: one fixed response to each request.
import { createServer } from 'node:net';
import { answerWith } from 'headgate-bench/member';
import { ANSWER_BYTES, jsonOf, LARGE_BYTES, REQUESTS } from './gateway-settings.mjs';
import { createRequestReader } from './request-reader.mjs';

/** The fields that an API sends. */
const FIELDS = {
  date: 'Fri, 27 Nov 2026 13:00:00 GMT',
  'cache-control': 'private, max-age=0',
  etag: '"5f1d-18c2a4e9"',
  vary: 'accept-encoding',
  'x-content-type-options': 'nosniff',
  'strict-transport-security': 'max-age=31536000',
};

function answer(body, type) {
  const fields = { ...FIELDS, 'content-type': type, 'content-length': body.length };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`HTTP/1.1 200 OK\r\n${lines.join('')}\r\n${body}`);
}

const SMALL = answer(jsonOf(ANSWER_BYTES), 'application/json; charset=utf-8');
const LARGE = answer('x'.repeat(LARGE_BYTES), 'application/octet-stream');
const { method, path } = REQUESTS.download;

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => {});
  socket.on(
    'data',
    createRequestReader((head) => socket.write(head.startsWith(`${method} ${path}`) ? LARGE : SMALL)),
  );
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
answerWith(() => ({ port: server.address().port }));
