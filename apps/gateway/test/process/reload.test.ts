/** SIGHUP and --watch: the config file is checked whole, and then judges every later request. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { eventually, pause, send } from 'headgate-testbed/raw-http';
import { answer, startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import {
  type Config,
  configOf,
  freePort,
  type Gateway,
  ratesOf,
  scratchFolder,
  serve,
  sha256,
  TOKEN,
} from '../support/gateway.ts';

const CHATS = '/api/v1/chats?account_id=acc_1';

interface Reloadable {
  readonly gateway: Gateway;
  /** The config with its listeners, as text of a file. */
  text(config: Config): string;
  /** Replaces the file in one step. */
  write(content: Config | string): void;
  /** Removes the file. */
  remove(): void;
  lines(msg: string): Record<string, unknown>[];
  metric(name: string): Promise<number | undefined>;
}

/** Runs a gateway whose config file can be replaced. `place` writes the first file, and returns its path. */
async function startWith(
  config: Config,
  flags: readonly string[] = [],
  place = (text: string): string => {
    const file = join(scratchFolder(), 'headgate.json');
    writeFileSync(file, text);
    return file;
  },
): Promise<Reloadable> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const listeners = { listen: { host: '127.0.0.1', port }, admin: { host: '127.0.0.1', port: adminPort } };
  const text = (next: Config): string => JSON.stringify({ ...listeners, ...next });
  const file = place(text(config));
  const gateway = await serve(['--config', file, ...flags], port, adminPort);
  return {
    gateway,
    text,
    write(content) {
      writeFileSync(`${file}.new`, typeof content === 'string' ? content : text(content));
      renameSync(`${file}.new`, file);
    },
    remove: () => rmSync(file),
    lines: (msg) => gateway.log().filter((line) => line.msg === msg),
    async metric(name) {
      const metrics = (await send(adminPort, { path: '/metrics' })).text.split('\n');
      const line = metrics.find((found) => found.startsWith(`headgate_config_${name} `));
      return line === undefined ? undefined : Number(line.split(' ').at(-1));
    },
  };
}

const limitOf = async ({ gateway }: Reloadable) => ratesOf(await gateway.ask('GET', CHATS)).limit;
const withLimit = (upstream: string, max: number, rest: Config = {}) =>
  configOf(upstream, { limits: { default: { allMethods: [`${max}/1m`] } }, ...rest });
const hashOf = (text: string): string => sha256(text).slice(0, 12);
const applied = 'reloads_total{result="applied"}';

describe('SIGHUP', () => {
  it('reloads the config: log and metrics say which file the process has', async () => {
    const upstream = await startUpstream();
    const running = await startWith(withLimit(upstream.url, 1000));
    const { gateway, text, write, lines, metric } = running;
    const first = hashOf(text(withLimit(upstream.url, 1000)));
    // A line is written up to 10 ms after it was logged.
    await eventually(() => lines('listening').length === 1, 'the line');
    expect(lines('listening')).toMatchObject([{ config: first }]);
    expect(await metric(`info{hash="${first}"}`)).toBe(1);
    const startedAt = (await metric('applied_timestamp_seconds')) as number;
    expect(Math.abs(startedAt - Date.now() / 1_000)).toBeLessThan(30);
    write(withLimit(upstream.url, 500, { storeDeadlineMs: 100 }));
    gateway.signal('SIGHUP');
    await eventually(() => lines('config reloaded').length === 1, 'the line');
    const second = hashOf(text(withLimit(upstream.url, 500, { storeDeadlineMs: 100 })));
    expect(lines('config reloaded')).toMatchObject([{ level: 30, config: second, changed: ['limits'] }]);
    await eventually(() => lines('these keys stay as they were until a restart').length === 1, 'the warning');
    expect(lines('these keys stay as they were until a restart')).toMatchObject([
      { level: 40, needsRestart: ['storeDeadlineMs'] },
    ]);
    expect(await limitOf(running)).toBe(500);
    expect(await metric(applied)).toBe(1);
    expect(await metric(`info{hash="${first}"}`)).toBeUndefined();
    expect(await metric(`info{hash="${second}"}`)).toBe(1);
    expect(await metric('applied_timestamp_seconds')).toBeGreaterThan(startedAt);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  });

  it('a file that is unchanged is said to be so, and flags still win over the file', async () => {
    const running = await startWith(withLimit('http://127.0.0.1:1', 1000), ['--upstream', 'http://127.0.0.1:2']);
    running.gateway.signal('SIGHUP');
    await eventually(() => running.lines('config unchanged').length === 1, 'the line');
    expect(await running.metric('reloads_total{result="unchanged"}')).toBe(1);
    expect(running.lines('these keys stay as they were until a restart')).toEqual([]);
    await running.gateway.stop();
  });

  it('a fault changes nothing; each place is logged, and the metrics show it until the file is right', async () => {
    const upstream = await startUpstream();
    const running = await startWith(withLimit(upstream.url, 1000));
    const { gateway, write, lines, metric } = running;
    const bad = withLimit(upstream.url, 500, { maxBodyBytes: -1, keys: [{ token: 'se cret', application: 'a' }] });
    for (const [i, content] of [bad, '{ "keys": [', ''].entries()) {
      write(content);
      gateway.signal('SIGHUP');
      await eventually(() => lines('config refused: the earlier one stays').length === i + 1, 'the line');
    }
    const refused = lines('config refused: the earlier one stays');
    expect(refused[0]).toMatchObject({
      level: 50,
      faults: [expect.stringMatching(/^maxBodyBytes: must be/), expect.stringMatching(/^keys\[0\]\.token: must be/)],
    });
    expect(refused[1]).toMatchObject({ faults: [expect.any(String)] });
    expect(gateway.output()).not.toContain('se cret');
    expect(await limitOf(running)).toBe(1000);
    expect(await metric('reloads_total{result="refused"}')).toBe(3);
    expect(await metric('last_reload_successful')).toBe(0);
    write(withLimit(upstream.url, 1000));
    gateway.signal('SIGHUP');
    await eventually(() => lines('config unchanged').length === 1, 'the line');
    expect(await metric('last_reload_successful')).toBe(1);
    await gateway.stop();
  });

  it('a file that is missing is a fault, and its line has no hash; a faulty file has that of the file', async () => {
    const running = await startWith(withLimit('http://127.0.0.1:1', 1000));
    const refused = () => running.lines('config refused: the earlier one stays');
    running.write('{');
    running.gateway.signal('SIGHUP');
    await eventually(() => refused().length === 1, 'the faulty file');
    expect(refused()[0]).toMatchObject({ config: sha256('{').slice(0, 12) });
    running.remove();
    running.gateway.signal('SIGHUP');
    await eventually(() => refused().length === 2, 'the missing file');
    expect(refused()[1]).toMatchObject({ faults: [expect.stringContaining('the file does not exist')] });
    expect(refused()[1]).not.toHaveProperty('config');
    await running.gateway.stop();
  });

  it('a file that became a pipe is refused: a later reload works, and the process still ends', async () => {
    const upstream = await startUpstream();
    let file = '';
    const running = await startWith(withLimit(upstream.url, 1000), [], (text) => {
      file = join(scratchFolder(), 'headgate.json');
      writeFileSync(file, text);
      return file;
    });
    rmSync(file);
    execFileSync('mkfifo', [file]);
    running.gateway.signal('SIGHUP');
    await eventually(() => running.lines('config refused: the earlier one stays').length === 1, 'the fault');
    running.write(withLimit(upstream.url, 500));
    running.gateway.signal('SIGHUP');
    await eventually(() => running.lines('config reloaded').length === 1, 'the reload');
    expect(await running.gateway.stop()).toEqual({ code: 0, signal: null });
  });

  it('a key that was removed is refused from the line in the log on', async () => {
    const upstream = await startUpstream();
    const { gateway, write, lines } = await startWith(configOf(upstream.url));
    expect((await gateway.ask('GET', CHATS)).status).toBe(200);
    write(configOf(upstream.url, { keys: [{ token: 'another', application: 'app_1' }] }));
    gateway.signal('SIGHUP');
    await eventually(() => lines('config reloaded').length === 1, 'the line');
    expect((await gateway.ask('GET', CHATS)).status).toBe(401);
    expect((await gateway.ask('GET', CHATS, { 'x-api-key': 'another' })).status).toBe(200);
    await gateway.stop();
  });

  it('many signals at once: the last file is applied, and nothing is applied twice at a time', async () => {
    const upstream = await startUpstream();
    const running = await startWith(withLimit(upstream.url, 1000));
    for (let max = 1; max <= 20; max++) {
      running.write(withLimit(upstream.url, max));
      running.gateway.signal('SIGHUP');
    }
    await eventually(async () => (await limitOf(running)) === 20, 'the last limit');
    expect(running.lines('config refused: the earlier one stays')).toEqual([]);
    await running.gateway.stop();
  });

  it('without --config there is nothing to reload: a warning, and the process goes on', async () => {
    const port = await freePort();
    const gateway = await serve(['--port', String(port)], port);
    gateway.signal('SIGHUP');
    await eventually(
      () => gateway.log().some(({ msg }) => msg === 'SIGHUP: there is no config file to reload'),
      'a line',
    );
    expect((await send(port, { path: '/healthz' })).status).toBe(200);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  });

  const RELOADS = NIGHTLY ? 50 : 12;

  it(`${RELOADS} reloads under load: no request fails, and none is judged by a mixture of two configs`, async () => {
    const fields = Array.from({ length: RELOADS + 1 }, (_, v) => `x-forwarded-v${v}`);
    const upstream = await startUpstream(async (seen, response, request) => {
      const versions = fields.flatMap((name, v) => (seen.headers[name] === undefined ? [] : [v]));
      const base = Number(/^\/v(\d+)\/api\//.exec(seen.url)?.[1]);
      await answer({ body: JSON.stringify([base, ...versions]) })(seen, response, request);
    });
    // A key of one version and an account of another belong to different applications: 404.
    const version = (v: number) =>
      configOf(`${upstream.url}/v${v}`, {
        keys: [{ sha256: sha256(TOKEN), application: `app_${v}` }],
        accounts: [{ id: 'acc_1', application: `app_${v}` }],
        routes: [
          { route: 'GET /api/v1/chats', account: 'query.account_id' },
          { route: 'POST /api/v1/emails', account: 'body.account_id', idempotent: true },
        ],
        limits: { default: { allMethods: [`${1_000_000 + v}/1m`] } },
        forwardFields: [`x-forwarded-v${v}`],
      });
    const { gateway, write, metric } = await startWith(version(0));
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const all = Object.fromEntries(fields.map((name) => [name, '1']));
    const perVersion = new Map<number, number>();
    const wrong: unknown[] = [];
    let isOver = false;
    let count = 0;
    const ask = async (): Promise<void> => {
      count += 1;
      const isMail = count % 3 === 0;
      const body = isMail ? { body: '{"account_id":"acc_1"}' } : {};
      const mailFields = { 'content-type': 'application/json', 'idempotency-key': `key-${count}` };
      const headers = { ...all, ...(isMail ? mailFields : {}) };
      const reply = isMail
        ? await gateway.ask('POST', '/api/v1/emails', headers, { agent, ...body })
        : await gateway.ask('GET', CHATS, headers, { agent });
      const limit = (ratesOf(reply).limit ?? 0) - 1_000_000;
      if (reply.status === 200 && reply.text === `[${limit},${limit}]`)
        perVersion.set(limit, (perVersion.get(limit) ?? 0) + 1);
      else wrong.push([reply.status, limit, reply.text]);
    };
    const client = async (): Promise<void> => {
      while (!isOver) await ask().catch((error: unknown) => wrong.push(String(error)));
    };
    const clients = Array.from({ length: 16 }, client);
    for (let v = 1; v <= RELOADS; v++) {
      const before = count;
      write(version(v));
      gateway.signal('SIGHUP');
      await eventually(async () => (await metric(applied)) === v, `reload ${v}`, 30_000);
      await eventually(() => count >= before + 40, 'requests between two reloads', 30_000);
    }
    isOver = true;
    await Promise.all(clients);
    agent.destroy();
    expect(wrong).toEqual([]);
    expect(count).toBeGreaterThan(RELOADS * 40);
    expect(perVersion.size).toBeGreaterThan(RELOADS / 2);
    expect(perVersion.get(RELOADS)).toBeGreaterThan(0);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  });
});

describe('--watch', () => {
  it('a ConfigMap: the file is a link into ..data, and only that link is swapped', async () => {
    const upstream = await startUpstream();
    const folder = scratchFolder();
    let revision = 0;
    const place = (text: string): string => {
      revision += 1;
      mkdirSync(join(folder, `..rev${revision}`));
      writeFileSync(join(folder, `..rev${revision}`, 'headgate.json'), text);
      symlinkSync(`..rev${revision}`, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
      if (revision === 1) symlinkSync('..data/headgate.json', join(folder, 'headgate.json'));
      return join(folder, 'headgate.json');
    };
    const running = await startWith(withLimit(upstream.url, 1000), ['--watch'], place);
    place(running.text(withLimit(upstream.url, 500)));
    await eventually(() => running.lines('config reloaded').length === 1, 'the line', 20_000);
    expect(await limitOf(running)).toBe(500);
    // The same content under another name changes nothing.
    place(running.text(withLimit(upstream.url, 500)));
    place(running.text(withLimit(upstream.url, 250)));
    await eventually(() => running.lines('config reloaded').length === 2, 'the second line', 20_000);
    expect(await limitOf(running)).toBe(250);
    expect(running.lines('config unchanged')).toEqual([]);
    await running.gateway.stop();
  });

  it('a file that is written in pieces is read when it is complete, and a fault is reported once', async () => {
    const upstream = await startUpstream();
    const folder = scratchFolder();
    const file = join(folder, 'headgate.json');
    const place = (text: string): string => {
      writeFileSync(file, text);
      return file;
    };
    const running = await startWith(withLimit(upstream.url, 1000), ['--watch'], place);
    const text = running.text(withLimit(upstream.url, 500));
    for (let end = 100; end < text.length; end += 100) {
      writeFileSync(file, text.slice(0, end));
      await pause(50);
    }
    writeFileSync(file, text);
    await eventually(() => running.lines('config reloaded').length === 1, 'the line', 20_000);
    expect(running.lines('config refused: the earlier one stays')).toEqual([]);
    expect(await limitOf(running)).toBe(500);
    writeFileSync(file, '{');
    await eventually(() => running.lines('config refused: the earlier one stays').length === 1, 'the fault', 20_000);
    // The content is compared every five seconds.
    await pause(6_000);
    expect(running.lines('config refused: the earlier one stays')).toHaveLength(1);
    writeFileSync(file, text);
    await eventually(() => running.lines('config unchanged').length === 1, 'the earlier file', 20_000);
    await running.gateway.stop();
  });
});
