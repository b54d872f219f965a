import { connect } from 'node:net';

/** A request of the service as bytes. */
export function requestBytes(path, headers, body, method = 'POST') {
  const fields = { host: 'localhost', 'content-length': body.length, ...headers };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), Buffer.from(body)]);
}

/**
 * Sends requests over keep-alive connections; each connection waits for the answer before its next request. It uses bare
 * sockets, because the load must not be the bottleneck.
 * @param requests lists of bytes, one list per connection
 * @returns seconds, and the milliseconds of each answer
 */
export async function sendAll(port, requests) {
  const began = performance.now();
  const times = await Promise.all(requests.map((list) => sendInTurn(port, list)));
  return { seconds: (performance.now() - began) / 1_000, milliseconds: times.flat() };
}

function sendInTurn(port, list) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1').setNoDelay();
    const times = [];
    let text = '';
    let began;
    const send = () => {
      text = '';
      began = performance.now();
      socket.write(list[times.length]);
    };
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
    socket.on('data', (data) => {
      text += data.toString('latin1');
      if (!isWhole(text)) return;
      if (!text.startsWith('HTTP/1.1 20')) return reject(new Error(`unexpected answer: ${text}`));
      times.push(performance.now() - began);
      if (times.length < list.length) return send();
      socket.removeAllListeners('close').end();
      resolve(times);
    });
    send();
  });
}

function isWhole(text) {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0);
  return text.length - end - 4 >= length;
}
