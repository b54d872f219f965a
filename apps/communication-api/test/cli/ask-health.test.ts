import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { askHealth } from '../../src/cli/ask-health.ts';
import { readConfig } from '../../src/config.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { freePort } from '../support/free-port.ts';

async function ask(port: string | undefined, waitMs: number) {
  const printed: string[] = [];
  const terminal = { out: (text: string) => void printed.push(text), error: () => undefined };
  const config = readConfig(port === undefined ? {} : { ADMIN_HOST: '0.0.0.0', ADMIN_PORT: port });
  return { code: await askHealth(config, waitMs, terminal), printed: printed.join('') };
}

test('it asks until the process is ready', async () => {
  let asked = 0;
  const server = createServer((_, response) => response.writeHead(++asked < 3 ? 503 : 200).end('{"status":"x"}'));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  cleanUpLater(() => server.close());
  const port = String((server.address() as AddressInfo).port);
  expect(await ask(port, 0)).toEqual({ code: 1, printed: `http://127.0.0.1:${port}/readyz: 503 {"status":"x"}\n` });
  expect(await ask(port, 10_000)).toMatchObject({ code: 0, printed: expect.stringContaining(': 200 ') });
  expect(asked).toBe(3);
});

test('a process that does not listen is not ready, and one without ADMIN_PORT cannot be asked', async () => {
  expect(await ask(await freePort(), 0)).toMatchObject({ code: 1, printed: expect.stringContaining('ECONNREFUSED') });
  await expect(ask(undefined, 0)).rejects.toThrow('ADMIN_PORT is not set');
});
