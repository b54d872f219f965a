// A load process of the topic gateway: keep-alive connections over bare sockets. Each connection waits for the response
// before its next request, and ends after the first response past the end of the measurement.
import { connect } from 'node:net';
import { answerWith } from 'headgate-bench/member';
import { LARGE_BYTES, REQUESTS, targetsOf, textOf } from './gateway-settings.mjs';
import { createResponseReader } from './response-reader.mjs';

const LARGE = Buffer.alloc(LARGE_BYTES, 'x');

/** @returns a function that writes one request */
function writerOf(request, prefix) {
  const { method, fields, idempotencyKeys } = request;
  const isLarge = request.bodyBytes === LARGE_BYTES;
  const text = isLarge ? '' : textOf(request);
  const bodyBytes = isLarge ? LARGE_BYTES : text.length;
  const known = { host: 'localhost', ...fields, ...(bodyBytes > 0 && { 'content-length': bodyBytes }) };
  const lines = Object.entries(known).map(([name, value]) => `${name}: ${value}\r\n`);
  const heads = targetsOf(request).map((target) => `${method} ${target} HTTP/1.1\r\n${lines.join('')}`);
  let count = 0;
  return (socket) => {
    const head = heads[count++ % heads.length];
    socket.write(`${head}${idempotencyKeys ? `idempotency-key: ${prefix}${count}\r\n` : ''}\r\n${text}`);
    if (isLarge) socket.write(LARGE);
  };
}

function sendUntil(end, { port, write, times }) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let began;
    const send = () => {
      began = performance.now();
      write(socket);
    };
    const read = createResponseReader((status, head) => {
      const now = performance.now();
      times.push(now - began);
      if (status !== 200) reject(new Error(`unexpected response: ${head}`));
      else if (now < end) return send();
      socket.removeAllListeners('close').end();
      resolve();
    });
    socket.on('connect', send);
    socket.on('data', read);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('a connection was closed')));
  });
}

answerWith(async ({ workload, port, seconds, prefix }) => {
  const request = REQUESTS[workload];
  const write = writerOf(request, prefix);
  const times = [];
  const began = performance.now();
  const end = began + seconds * 1_000;
  await Promise.all(Array.from({ length: request.connections }, () => sendUntil(end, { port, write, times })));
  const took = (performance.now() - began) / 1_000;
  times.sort((a, b) => a - b);
  const percentile = (share) => Math.round(times[Math.ceil(times.length * share) - 1] * 1_000);
  return { requests: times.length, seconds: took, p50Micros: percentile(0.5), p99Micros: percentile(0.99), failed: 0 };
});
