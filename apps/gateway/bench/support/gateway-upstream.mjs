// The upstream of the topic gateway, as light as possible: one fixed response to each request.
import { createServer } from 'node:net';
import { answerWith } from 'headgate-bench/member';
import { LARGE_BYTES, REQUESTS } from './gateway-settings.mjs';
import { createRequestReader } from './request-reader.mjs';

const answer = (body, type) =>
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
const SMALL = answer('ok', 'text/plain');
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
