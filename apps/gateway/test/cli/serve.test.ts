/** `serve` runs until a signal: draining, the exit code, and warnings about the config. */

import { listen } from 'headgate-testbed/listen';
import { eventually, send } from 'headgate-testbed/raw-http';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { serve } from '../../src/cli/serve.ts';
import { checkConfig } from '../../src/config/config.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { Log } from '../../src/operations/log.ts';
import { ListenError } from '../../src/server/listen.ts';
import { configOf } from '../support/gateway.ts';
import { type LogFile, openLog } from '../support/in-process.ts';

/** What `serve` creates itself, so that a test can reach it. */
const made = vi.hoisted(() => ({
  log: undefined as Log | undefined,
  gateways: [] as { stop(): Promise<number> }[],
  stopFails: undefined as Error | undefined,
}));

vi.mock('../../src/operations/log.ts', async (original) => {
  const actual = await original<typeof import('../../src/operations/log.ts')>();
  return { ...actual, createLog: (fd?: number) => made.log ?? actual.createLog(fd) };
});
vi.mock('../../src/gateway.ts', async (original) => {
  const actual = await original<typeof import('../../src/gateway.ts')>();
  return {
    ...actual,
    startGateway: async (...args: Parameters<typeof actual.startGateway>): Promise<Gateway> => {
      const gateway = await actual.startGateway(...args);
      made.gateways.push(gateway);
      const stop = async () => {
        const cutOff = await gateway.stop();
        if (made.stopFails !== undefined) throw made.stopFails;
        return cutOff;
      };
      return { ...gateway, stop };
    },
  };
});

const EVENTS = ['SIGTERM', 'SIGINT', 'uncaughtException', 'unhandledRejection'] as const;
type Listener = (value: unknown) => void;
const listenersOf = (event: string) => process.listeners(event as 'SIGTERM') as Listener[];

let before: Map<string, Listener[]>;
let log: LogFile;
let exits: unknown[];
let printed: string;

/** Calls the listener that `serve` has added. Emitting the event would also call the test runner's listeners. */
function signalServe(event: (typeof EVENTS)[number], value: unknown): void {
  const [added] = listenersOf(event).filter((listener) => !before.get(event)?.includes(listener));
  if (added === undefined) throw new Error(`serve has no listener for ${event}.`);
  added(value);
}

const line = (msg: string) => log.lines().find((found) => found.msg === msg);
const portOf = (msg: string) => eventually(() => line(msg)?.port as number | undefined, msg);

beforeEach(() => {
  before = new Map(EVENTS.map((event) => [event, listenersOf(event)]));
  // `openLog` needs the real `createLog`.
  made.log = undefined;
  log = openLog();
  made.log = { ...log.log, close: async () => {} };
  made.stopFails = undefined;
  exits = [];
  printed = '';
  vi.spyOn(process, 'exit').mockImplementation((code) => exits.push(code) as never);
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += text;
    return true;
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(made.gateways.splice(0).map((gateway) => gateway.stop()));
  for (const event of EVENTS) {
    for (const listener of listenersOf(event)) {
      if (!before.get(event)?.includes(listener)) process.off(event, listener as never);
    }
  }
});

const anyPort = { host: '127.0.0.1', port: 0 };
const config = (rest: Record<string, unknown> = {}) =>
  checkConfig({ listen: anyPort, ...configOf('http://127.0.0.1:1'), ...rest }, 'test');

it.each(['SIGTERM', 'SIGINT'] as const)('%s: drains, stops, and exits 0', async (signal) => {
  await serve(config({ admin: anyPort }), {});
  const [port, adminPort] = [await portOf('listening'), await portOf('admin listening')];
  expect(line('listening')).toMatchObject({ host: '127.0.0.1', url: `http://127.0.0.1:${port}` });
  expect((await send(port, { path: '/healthz' })).status).toBe(200);
  expect((await send(adminPort, { path: '/metrics' })).status).toBe(200);
  signalServe(signal, signal);
  await eventually(() => exits.length > 0, 'the exit');
  expect(exits).toEqual([0]);
  await eventually(() => line('stopped'), 'the last line');
  expect(line('draining')).toMatchObject({ signal });
  expect(line('stopped')).toMatchObject({ cutOff: 0 });
  await expect(send(port, { path: '/healthz' })).rejects.toThrow('ECONNREFUSED');
  expect(printed).toBe('');
});

it('a second signal does not wait: exit 1', async () => {
  await serve(config(), {});
  signalServe('SIGTERM', 'SIGTERM');
  vi.mocked(process.exit).mockImplementationOnce((code) => {
    throw new Error(`exit ${code}`);
  });
  expect(() => signalServe('SIGINT', 'SIGINT')).toThrow('exit 1');
  await eventually(() => exits.length > 0, 'the exit of the first');
});

it('a failed shutdown exits 1, and the log has the error', async () => {
  made.stopFails = new Error('stuck');
  await serve(config(), {});
  signalServe('SIGTERM', 'SIGTERM');
  await eventually(() => exits.length > 0, 'the exit');
  expect(exits).toEqual([1]);
  await eventually(() => line('shutdown failed'), 'the line');
  expect(line('shutdown failed')).toMatchObject({ level: 50, err: { message: 'stuck' } });
});

it('an uncaught error is logged, and the process keeps serving', async () => {
  await serve(config(), {});
  const port = await portOf('listening');
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) signalServe(event, new Error(event));
  await eventually(() => log.lines().filter(({ msg }) => msg === 'uncaught error').length === 2, 'both lines');
  expect(exits).toEqual([]);
  expect((await send(port, { path: '/healthz' })).status).toBe(200);
});

it('a config without keys or routes: a warning that every request is refused', async () => {
  await serve(config({ keys: [], routes: [] }), {});
  await portOf('listening');
  const warnings = log.lines().filter(({ level }) => level === 40);
  expect(warnings.map(({ msg }) => msg)).toEqual([
    'the config has no keys, so every request is refused',
    'the config has no routes, so every request is refused',
  ]);
  expect(line('admin listening')).toBeUndefined();
});

it('without a config: the demonstration with its banner, and its provider stops with it', async () => {
  await serve(undefined, { port: '0' });
  const port = await portOf('listening');
  expect(printed).toContain(`headgate listening on http://127.0.0.1:${port}, metrics on`);
  const headers = { 'x-api-key': 'demo-key-one' };
  const reply = await send(port, { method: 'POST', path: '/api/v1/emails?account_id=acc_alice', headers });
  expect(reply).toMatchObject({ status: 201, headers: { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '99' } });
  signalServe('SIGINT', 'SIGINT');
  await eventually(() => exits.length > 0, 'the exit');
  expect(exits).toEqual([0]);
});

it.each(['the demonstration', 'a config'])(
  '%s: a port in use is a ListenError, and no signal listener stays',
  async (kind) => {
    const taken = await listen((_, response) => void response.end());
    const failing =
      kind === 'a config'
        ? serve(config({ listen: { ...anyPort, port: taken.port } }), {})
        : serve(undefined, { port: String(taken.port) });
    await expect(failing).rejects.toThrow(ListenError);
    for (const event of EVENTS) expect(listenersOf(event)).toEqual(before.get(event));
    await taken.close();
  },
);
