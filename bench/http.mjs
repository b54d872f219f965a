// npm run bench:http: what the adapter adds to a bare node:http server, in server CPU a request; both servers live, loaded in turns.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { median, origin, progress, provenance, save, table, writeSection } from './support/report.mjs';

const ROUNDS = 25;
const CONNECTIONS = 32;
const REQUESTS_PER_CONNECTION = 500;
const TARGET_US = 3;

async function start(kind) {
  const child = fork(new URL('./support/http-server.mjs', import.meta.url), [kind]);
  const [{ port }] = await once(child, 'message');
  const cpu = async () => {
    child.send('cpu');
    const [{ cpu: used }] = await once(child, 'message');
    return used.user + used.system;
  };
  return { kind, port, cpu, stop: () => child.kill() };
}

/** One kept connection that asks, waits for the answer, and asks again. A bare socket: the load must not be the bottleneck. */
function load(port, requests, account) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const request = `GET / HTTP/1.1\r\nhost: localhost\r\nx-account: ${account}\r\n\r\n`;
    let answered = 0;
    socket.on('error', reject);
    socket.on('data', (data) => {
      if (!data.includes('200 OK')) return reject(new Error(`unexpected answer: ${data}`));
      if (++answered === requests) return socket.end(resolve);
      socket.write(request);
    });
    socket.write(request);
  });
}

async function round(server) {
  const began = performance.now();
  const cpuBefore = await server.cpu();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, i) => load(server.port, REQUESTS_PER_CONNECTION, `account_${i}`)),
  );
  const requests = CONNECTIONS * REQUESTS_PER_CONNECTION;
  const cpuMicros = ((await server.cpu()) - cpuBefore) / requests;
  return { cpuMicros, perSecond: requests / ((performance.now() - began) / 1_000) };
}

const servers = [await start('bare'), await start('headgate')];
const figures = { bare: [], headgate: [] };
for (let i = -3; i < ROUNDS; i++) {
  if (i % 5 === 0) progress(`round ${i} of ${ROUNDS}`);
  for (const server of i % 2 === 0 ? servers : servers.toReversed()) {
    const figure = await round(server);
    if (i >= 0) figures[server.kind].push(figure);
  }
}
for (const server of servers) server.stop();

const added = median(figures.headgate.map(({ cpuMicros }, i) => cpuMicros - figures.bare[i].cpuMicros));
const result = { provenance: provenance(), figures, addedMicros: added };
save('http', result);
const row = (kind) => [
  kind === 'bare' ? 'bare node:http' : 'with headgate, four windows',
  median(figures[kind].map(({ cpuMicros }) => cpuMicros)).toFixed(2),
  Math.round(median(figures[kind].map(({ perSecond }) => perSecond))).toLocaleString('en'),
];
const report = `## node:http

Server CPU a request and requests a second, median of ${ROUNDS} rounds in turns, ${CONNECTIONS} kept connections.

${table(['server', 'CPU, µs a request', 'requests a second'], [row('bare'), row('headgate')])}

Added: **${added.toFixed(2)} µs** of server CPU a request (median of the differences within a round; target: at most ${TARGET_US} ${added <= TARGET_US ? '✓' : '✗'}).

${origin(result.provenance, 'bench:http')}
`;
console.log(`\n${report}`);
if (process.argv.includes('--write')) writeSection('http', report);
