/** Limits that hold on Workers, in Cloudflare's simulator: the sample of docs/runtimes.md, and Redis over HTTP. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { startRedisRest } from 'headgate-testbed/redis-rest';
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from 'vitest';
import { ROOT } from './support/package.ts';

/** The parts of Miniflare that this test uses. */
interface Miniflare {
  dispatchFetch(url: string, init?: { method?: string; headers?: Record<string, string> }): Promise<Response>;
  dispose(): Promise<void>;
}

const PACKAGES = join(ROOT, 'test/runtimes/workers');
const folder = mkdtempSync(join(tmpdir(), 'headgate-durable-'));
const running = new Set<Miniflare>();
let script: string;

beforeAll(async () => {
  if (!existsSync(join(PACKAGES, 'node_modules/@cloudflare/workers-types')))
    execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: PACKAGES, stdio: ['ignore', 'ignore', 'inherit'] });
  const page = readFileSync(join(ROOT, 'docs/runtimes.md'), 'utf8');
  const [, sample] = /^```typescript\n(\/\/ worker\.ts\n.*?)^```/ms.exec(page) ?? [];
  script = sample ?? '';
  expect(script).not.toBe('');
});

afterAll(async () => {
  await Promise.all([...running].map((worker) => worker.dispose()));
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a worker in a new process. `from` is the folder of the packages that it imports. */
async function startWorker(code: string, options: object, from = join(ROOT, 'test')): Promise<Miniflare> {
  const { outputFiles } = await build({
    stdin: { contents: code, loader: 'ts', resolveDir: from },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    conditions: ['workerd', 'worker', 'browser'],
    mainFields: ['browser', 'module', 'main'],
    external: ['cloudflare:*', 'node:*'],
    logLevel: 'error',
  });
  const { Miniflare } = createRequire(join(PACKAGES, 'package.json'))('miniflare');
  const worker: Miniflare = new Miniflare({
    modules: true,
    script: outputFiles[0]?.text ?? '',
    compatibilityDate: '2026-07-01',
    ...options,
  });
  running.add(worker);
  return worker;
}

/** Starts the sample on the stored objects of `name`. */
const start = (name: string, change = (text: string) => text): Promise<Miniflare> =>
  startWorker(change(script), {
    durableObjects: { COUNTERS: { className: 'Counters', useSQLite: true } },
    durableObjectsPersist: join(folder, name),
  });

const stop = async (worker: Miniflare): Promise<void> => {
  running.delete(worker);
  await worker.dispose();
};

async function ask(worker: Miniflare, account: string | undefined, method = 'GET') {
  const headers: Record<string, string> = account === undefined ? {} : { 'x-account': account };
  const { status, headers: fields } = await worker.dispatchFetch('http://localhost/', { method, headers });
  return { status, retryAfter: Number(fields.get('retry-after')), left: fields.get('x-ratelimit-remaining') };
}

it('compiles', () => {
  const types = join(PACKAGES, '.run');
  const compilerOptions = {
    target: 'ES2023',
    lib: ['ES2023'],
    module: 'ESNext',
    moduleResolution: 'Bundler',
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    types: ['@cloudflare/workers-types'],
  };
  mkdirSync(types, { recursive: true });
  writeFileSync(join(types, 'worker.ts'), script);
  // As `wrangler types` writes it.
  const env = "interface Env { COUNTERS: DurableObjectNamespace<import('./worker').Counters> }";
  writeFileSync(join(types, 'env.d.ts'), `declare namespace Cloudflare { ${env} }`);
  writeFileSync(join(types, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const compiler = join(ROOT, 'node_modules/typescript-7/bin/tsc');
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', types, '--pretty', 'false'], {
    encoding: 'utf8',
  });
  rmSync(types, { recursive: true, force: true });
  expect([stdout, status]).toEqual(['', 0]);
});

it('limits each account, also at the same time, and charges a failure nothing', async () => {
  const worker = await start('accounts');
  expect((await ask(worker, undefined)).status).toBe(401);
  expect((await ask(worker, 'ann', 'PUT')).status).toBe(503);
  const statuses = await Promise.all(Array.from({ length: 8 }, async () => (await ask(worker, 'ann')).status));
  expect(statuses.sort()).toEqual([200, 200, 200, 429, 429, 429, 429, 429]);
  const { status, retryAfter } = await ask(worker, 'ann');
  expect(status).toBe(429);
  expect(retryAfter).toBeGreaterThan(0);
  expect(retryAfter).toBeLessThanOrEqual(60);
  expect(await ask(worker, 'bob')).toMatchObject({ status: 200, left: '4999' });
  await stop(worker);
});

it('holds after a restart', async () => {
  const before = await start('restart');
  for (let i = 0; i < 3; i++) expect((await ask(before, 'ann')).status).toBe(200);
  await stop(before);
  const after = await start('restart');
  expect((await ask(after, 'ann')).status).toBe(429);
  await stop(after);
});

it('accepts again when the window is over, and the alarm removes the rows of windows that are over', async () => {
  const short = (text: string) =>
    text
      .replace("['3/1m', '5000/1d']", "['1/2s']")
      // Shows how many rows are stored.
      .replace(
        '  reset(route?: string) {',
        '  fetch() { return Response.json([...this.ctx.storage.kv.list()].length); }\n$&',
      )
      .replace(
        'export default { fetch: ',
        "export default { fetch: (request: Request) => request.method === 'POST' ? env.COUNTERS.getByName('ann').fetch(request) : ",
      )
      .replace(/(withHeadgate\(gate, .*\)) };/, '($1)(request) };');
  const worker = await start('short', short);
  const rows = async () => (await worker.dispatchFetch('http://localhost/', { method: 'POST' })).json();
  expect((await ask(worker, 'ann')).status).toBe(200);
  expect(await rows()).toBe(1);
  await expect.poll(async () => (await ask(worker, 'ann')).status, { interval: 200 }).toBe(200);
  await expect.poll(rows, { interval: 200 }).toBe(0);
  await stop(worker);
});

it('answers 503 if the object fails, and never lets the request pass', async () => {
  const worker = await start('failing', (text) =>
    text.replace('consume(route: string, windowSet: WindowSet, cost: number) {', "$& throw new Error('no storage');"),
  );
  expect((await ask(worker, 'ann')).status).toBe(503);
  await stop(worker);
});

it('answers 503 if the object does not answer in time', async () => {
  const worker = await start('frozen', (text) =>
    text
      .replace('consume(route: string, windowSet: WindowSet, cost: number) {', 'async $& await scheduler.wait(60_000);')
      .replace('DEADLINE_MS = 1_000', 'DEADLINE_MS = 50'),
  );
  expect((await ask(worker, 'ann')).status).toBe(503);
  await stop(worker);
});

it('Redis over HTTP counts the requests of all workers exactly', async () => {
  const { installPeers } = await import(new URL('../packages/bench/src/peers.mjs', import.meta.url).href);
  installPeers();
  const rest = await startRedisRest(inject('redis').port);
  onTestFinished(() => rest.close());
  const code = `
    import { Redis } from '@upstash/redis/cloudflare';
    import { createGate, createLimiter } from 'headgate';
    import { withHeadgate } from 'headgate/fetch';
    import { createRedisStore } from 'headgate/redis';

    const client = new Redis({ url: '${rest.url}', token: '${rest.token}', retry: false });
    const options = { prefix: 'workers-${process.pid}', deadlineMs: 30_000, onStoreFailure: 'refuse' } as const;
    const gate = createGate<Request>({
      limiter: createLimiter({ store: createRedisStore(client, options), limits: ['7/1h'] }),
      account: (request) => request.headers.get('x-account') ?? undefined,
    });
    export default { fetch: withHeadgate(gate, () => new Response('ok')) };
  `;
  const options = { compatibilityFlags: ['nodejs_compat'] };
  const workers = await Promise.all([1, 2].map(() => startWorker(code, options, join(ROOT, 'packages/bench/versus'))));
  const answers = await Promise.all(workers.flatMap((worker) => Array.from({ length: 10 }, () => ask(worker, 'ann'))));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), ...Array(13).fill(429)]);
  await Promise.all(workers.map(stop));
});
