import { execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { compileSamples } from './support/compile-samples.ts';
import { ROOT } from './support/package.ts';

const run = promisify(execFile);
/** Inside the package, so that `headgate/…` resolves to the built package through its own exports. */
const FOLDER = join(ROOT, 'test/.examples');

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

describe('examples in README and docs', () => {
  it('exist', () => expect(examples.length).toBeGreaterThanOrEqual(6));

  it('compile, strictly, against the built types', () => expect(faults).toBe(''));

  // Some at a time: many of them wait for a timer, or for a connection that closes. Each has ports of its own.
  it.concurrent.each(examples.filter((example) => !isServer(example)))(
    '$name runs and prints what the page says',
    async ({ name, output }) => {
      const { stdout: printed, stderr } = await run(process.execPath, [`${name}.mjs`], {
        cwd: FOLDER,
        timeout: 100_000,
        env: environment(),
      });
      if (output !== undefined) expect(printed).toBe(output);
      // No example is a sign of a mistake.
      expect(stderr).not.toContain('MisuseWarning');
    },
  );

  // coming-from.nightly.test.ts sends requests to the others, and compares the answers with those of other libraries.
  const asked = examples.filter((example) => isServer(example) && !example.name.startsWith('docs-from-'));
  it.concurrent.each(asked)('$name serves', async ({ name, code }) => {
    const port = /\.listen\((?:\{ port: )?(\d+)/.exec(code)?.[1];
    const server = spawn(process.execPath, [`${name}.mjs`], { cwd: FOLDER, stdio: 'inherit', env: environment() });
    try {
      const ask = () => fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-account': 'a' } });
      const answer = await expect
        .poll(() => ask().catch(() => undefined), { timeout: 60_000 })
        .toBeDefined()
        .then(ask);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/);
    } finally {
      server.kill('SIGKILL');
    }
  });
});
