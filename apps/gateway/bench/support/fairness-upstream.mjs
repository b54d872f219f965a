// The upstream of the topic fairness: one process with two ports, so that both gateways share the same upstream. It
// counts connections per port. Another process of this kind is the sink, to which attacks go in place of the gateway.
import { createServer } from 'node:net';
import { answerWith } from 'headgate-bench/member';
import { LARGE_ANSWER_BYTES } from './fairness-tenants.mjs';
import { createRequestReader } from './request-reader.mjs';

/** Longer than a phase. */
const SLOW_MS = 10_000;
const answer = (body) =>
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
const SMALL = answer('ok');
const LARGE = answer('x'.repeat(LARGE_ANSWER_BYTES));

function listen() {
  const stats = { open: 0, most: 0 };
  const server = createServer({ noDelay: true }, (socket) => {
    stats.most = Math.max(stats.most, ++stats.open);
    let timer;
    socket.on('error', () => {});
    socket.on('close', () => {
      stats.open--;
      clearTimeout(timer);
    });
    const read = createRequestReader((target) => {
      if (target.startsWith('GET /slow')) timer = setTimeout(() => socket.write(SMALL), SLOW_MS);
      else socket.write(target.startsWith('POST /reports') ? LARGE : SMALL);
    });
    socket.on('data', read);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve({ stats, port: server.address().port })));
}

const ports = [await listen(), await listen()];
answerWith(({ step }) => {
  if (step === 'forget the peak') for (const { stats } of ports) stats.most = stats.open;
  return { ports: ports.map(({ port }) => port), most: ports.map(({ stats }) => stats.most) };
});
