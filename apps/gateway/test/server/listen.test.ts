/** If the gateway cannot listen, the error is one sentence that says how to choose another host or port. */
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { ListenError, listen, urlOf } from '../../src/server/listen.ts';

const PLACES = { host: '--host', port: '--port' };

it.each([
  ['EADDRINUSE', 'port 80 of h is in use (EADDRINUSE): choose another with --port'],
  ['EACCES', 'port 80 of h needs more rights (EACCES): choose another with --port'],
  ['ENOTFOUND', 'the host h is unknown (ENOTFOUND): choose another with --host'],
  ['EAI_AGAIN', 'the host h is unknown (EAI_AGAIN): choose another with --host'],
  ['EADDRNOTAVAIL', 'the host h is not an address of this machine (EADDRNOTAVAIL): choose another with --host'],
  ['EINVAL', 'cannot listen on port 80 of h (EINVAL): choose another with --host or --port'],
  [undefined, 'cannot listen on port 80 of h (odd): choose another with --host or --port'],
])('%s: the error has the cause, and what to do', (code, message) => {
  const cause = Object.assign(new Error('odd'), code === undefined ? {} : { code });
  const error = new ListenError({ host: 'h', port: 80 }, PLACES, cause);
  expect({ message: error.message, name: error.name, cause: error.cause }).toEqual({
    message,
    name: 'ListenError',
    cause,
  });
});

it('port 0 becomes a real port; listening on it a second time is a ListenError', async () => {
  const first = createServer();
  const second = createServer();
  const address = await listen(first, { host: '127.0.0.1', port: 0 }, PLACES);
  expect(address).toEqual({ host: '127.0.0.1', port: expect.any(Number) });
  expect(address.port).toBeGreaterThan(0);
  await expect(listen(second, address, PLACES)).rejects.toThrow(`port ${address.port} of 127.0.0.1 is in use`);
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
