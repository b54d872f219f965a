/** If the gateway cannot listen on a port, the error is one sentence that says how to choose another. */
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { ListenError, listen, urlOf } from '../../../src/gateway/server/listen.ts';

it.each([
  ['EADDRINUSE', 'port 80 of h is in use (EADDRINUSE): choose another with --port'],
  ['EACCES', 'port 80 of h needs more rights (EACCES): choose another with --port'],
  ['ENOTFOUND', 'cannot listen on h, port 80 (ENOTFOUND): choose another with --port'],
  [undefined, 'cannot listen on h, port 80 (odd): choose another with --port'],
])('%s: the error has the cause, and what to do', (code, message) => {
  const cause = Object.assign(new Error('odd'), code === undefined ? {} : { code });
  const error = new ListenError({ host: 'h', port: 80 }, '--port', cause);
  expect({ message: error.message, name: error.name, cause: error.cause }).toEqual({
    message,
    name: 'ListenError',
    cause,
  });
});

it('port 0 becomes a real port; listening on it a second time is a ListenError', async () => {
  const first = createServer();
  const second = createServer();
  const address = await listen(first, { host: '127.0.0.1', port: 0 }, '--port');
  expect(address).toEqual({ host: '127.0.0.1', port: expect.any(Number) });
  expect(address.port).toBeGreaterThan(0);
  await expect(listen(second, address, '--port')).rejects.toThrow(`port ${address.port} of 127.0.0.1 is in use`);
  // Once the server listens, its later errors are not handled here.
  expect(first.listenerCount('error')).toBe(0);
  first.close();
});

it.each([
  ['127.0.0.1', 'http://127.0.0.1:8080'],
  ['::1', 'http://[::1]:8080'],
])('the URL of %s', (host, url) => {
  expect(urlOf({ host, port: 8080 })).toBe(url);
});
