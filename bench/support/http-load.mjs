import { connect } from 'node:net';

/** So many that none is asked for often within a minute: some limiters keep the time of every request. */
export const ACCOUNTS = 20_000;
const REQUESTS = Array.from(
  { length: ACCOUNTS },
  (_, i) => `GET / HTTP/1.1\r\nhost: localhost\r\nx-account: account_${i}\r\n\r\n`,
);

/** Kept connections that each ask, wait for the answer, and ask again. Bare sockets: the load must not be the bottleneck. */
export async function loadHttp({ port, connections, requests }) {
  const each = Math.ceil(requests / connections);
  const began = performance.now();
  await Promise.all(Array.from({ length: connections }, (_, i) => askInTurn(port, each, i, connections)));
  return { seconds: (performance.now() - began) / 1_000, answers: each * connections };
}

function askInTurn(port, times, first, step) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let answered = 0;
    const ask = () => socket.write(REQUESTS[(first + answered * step) % ACCOUNTS]);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
    socket.on('data', (data) => {
      if (!data.includes('HTTP/1.1 200')) return reject(new Error(`unexpected answer: ${data}`));
      answered += 1;
      if (answered === times) socket.end(resolve);
      else ask();
    });
    ask();
  });
}
