// The upstream of the topic scale-out, as light as possible: one fixed response to each request head.
import { createServer } from 'node:net';

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok';
const END = '\r\n\r\n';

const server = createServer((socket) => {
  let rest = '';
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.setEncoding('latin1').on('data', (text) => {
    const heads = (rest + text).split(END);
    rest = heads.pop();
    if (heads.length > 0) socket.write(ANSWER.repeat(heads.length));
  });
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
process.on('message', () => process.send({ port: server.address().port }));
process.on('disconnect', () => process.exit());
process.send({ ready: true });
