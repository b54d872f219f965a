import { execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { compileSamples } from './support/compile-samples.ts';
import { ROOT } from './support/package.ts';

const run = promisify(execFile);
/** Inside the package, so that `headgate/…` resolves to the built package through its own exports. */
const FOLDER = join(ROOT, 'test/.examples');
const RUN_SAMPLES = join(ROOT, 'test/support/run-samples.mjs');

interface Example {
  readonly name: string;
  readonly code: string;
  /** The text block that follows, if the page says what is printed. */
  readonly output: string | undefined;
}

const pages = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
];
const examples: Example[] = pages.flatMap((page) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```ts\n(.*?)^```(?:\n\n```text\n(.*?)^```)?/gms)].map(
    ([, code, output], i) => ({ name: `${page.replace(/\W/g, '-')}-${i + 1}`, code: code as string, output }),
  ),
);

/** A server runs until it is stopped. An example whose output is known sends its requests itself, and ends. */
const isServer = ({ code, output }: Example) => code.includes('.listen(') && output === undefined;

/** As many examples as one process runs, so that several processes take about as long. */
const TOGETHER = 15;

/**
 * Examples by the process that they share, because most of the time goes into loading modules. At night, each has a process
 * of its own. Some modules change more than their example: Hono's server replaces the global `Response`.
 */
function byProcess(some: readonly Example[]): [title: string, names: string[]][] {
  const processes = new Map<string, string[]>();
  let others = 0;
  for (const { name, code } of some) {
    const isAlone = NIGHTLY || /'(@hono\/node-server|node:test)'/.test(code);
    const title = isAlone ? name : `process ${Math.floor(others++ / TOGETHER) + 1}`;
    processes.set(title, [...(processes.get(title) ?? []), name]);
  }
  return [...processes];
}

/** What the compiler reports; it writes `name.mjs` of each example in any case. */
let faults: string;

beforeAll(async () => {
  faults = await compileSamples(FOLDER, examples);
});

afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

/** Programs see the servers of the tests. */
const environment = () => ({
  ...process.env,
  REDIS_PORT: String(inject('redis').port),
  DATABASE_URL: inject('postgres').url,
});

/** Liftoff compiles PostgreSQL as WebAssembly with half the time. */
const argumentsFor = (names: readonly string[]) => ['--liftoff-only', RUN_SAMPLES, FOLDER, ...names];

describe('examples in README and docs', () => {
  it('exist', () => expect(examples.length).toBeGreaterThanOrEqual(6));

  it('compile, strictly, against the built types', () => expect(faults).toBe(''));

  // Some at a time: many of them wait for a timer, or for a connection that closes. Each has ports of its own.
  it.concurrent.each(byProcess(examples.filter((example) => !isServer(example))))(
    '%s: each runs and prints what the page says',
    async (_, names) => {
      const { stdout, stderr } = await run(process.execPath, argumentsFor(names), {
        cwd: FOLDER,
        timeout: 100_000,
        env: environment(),
      });
      const printed: Record<string, string> = JSON.parse(stdout);
      const stated = examples.filter(({ name, output }) => names.includes(name) && output !== undefined);
      expect(Object.fromEntries(stated.map(({ name }) => [name, printed[name]]))).toEqual(
        Object.fromEntries(stated.map(({ name, output }) => [name, output])),
      );
      // No example is a sign of a mistake.
      expect(stderr).not.toContain('MisuseWarning');
    },
  );

  // coming-from.nightly.test.ts sends requests to the others, and compares the answers with those of other libraries.
  const asked = examples.filter((example) => isServer(example) && !example.name.startsWith('docs-from-'));
  it.concurrent.each(byProcess(asked))('%s: each serves', async (_, names) => {
    const server = spawn(process.execPath, argumentsFor(names), { cwd: FOLDER, stdio: 'inherit', env: environment() });
    const serves = async ({ name, code }: Example) => {
      const port = /\.listen\((?:\{ port: )?(\d+)/.exec(code)?.[1];
      const ask = () => fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-account': 'a' } });
      const answer = await expect
        .poll(() => ask().catch(() => undefined), { timeout: 60_000, message: name })
        .toBeDefined()
        .then(ask);
      expect(answer.status, name).toBe(200);
      expect(answer.headers.get('x-ratelimit-limit') ?? 'no header', name).toMatch(/^\d+$/);
    };
    try {
      await Promise.all(examples.filter(({ name }) => names.includes(name)).map(serves));
    } finally {
      server.kill('SIGKILL');
    }
  });
});
