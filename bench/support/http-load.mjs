import { connect } from 'node:net';

/** Enough accounts that none is used often within a minute, because some limiters store the time of every request. */
export const ACCOUNTS = 20_000;
const REQUESTS = Array.from(
  { length: ACCOUNTS },
  (_, i) => `GET / HTTP/1.1\r\nhost: localhost\r\nx-account: account_${i}\r\n\r\n`,
);

/**
 * Sends requests over keep-alive connections; each connection waits for the response before its next request. It uses
 * bare sockets, because the load must not be the bottleneck.
 */
export async function loadHttp({ port, connections, requests }) {
  const each = Math.ceil(requests / connections);
  const began = performance.now();
  await Promise.all(Array.from({ length: connections }, (_, i) => sendInTurn(port, each, i, connections)));
  return { seconds: (performance.now() - began) / 1_000, answers: each * connections };
}

function sendInTurn(port, times, first, step) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let answered = 0;
    const send = () => socket.write(REQUESTS[(first + answered * step) % ACCOUNTS]);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
    socket.on('data', (data) => {
      if (!data.includes('HTTP/1.1 200')) return reject(new Error(`unexpected response: ${data}`));
      answered += 1;
      if (answered === times) socket.end(resolve);
      else send();
    });
    send();
  });
}
