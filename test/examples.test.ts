import { execFile, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '..');
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

/** NodeNext decides by the name of a file whether it is ESM; a decorated class of Nest needs its types at run time. */
const COMPILER_OPTIONS = {
  target: 'ES2023',
  module: 'NodeNext',
  strict: true,
  skipLibCheck: true,
  types: ['node'],
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

/** A server runs until it is stopped. An example whose output is known sends its requests itself, and ends. */
const isServer = ({ code, output }: Example) => code.includes('.listen(') && output === undefined;

/** What the compiler reports; it writes `name.mjs` of each example in any case. */
let faults: string;

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const { name, code } of examples) writeFileSync(join(FOLDER, `${name}.mts`), code);
  writeFileSync(
    join(FOLDER, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ['*.mts'] }),
  );
  const compiler = join(ROOT, 'node_modules/typescript-7/bin/tsc');
  const { stdout } = await run(process.execPath, [compiler, '-p', FOLDER, '--pretty', 'false']).catch((error) => {
    // With faults, it exits with an error and its output. Without output, it did not run.
    if (!error.stdout) throw error;
    return error as { stdout: string };
  });
  faults = stdout;
});

afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

describe('examples in README and docs', () => {
  it('exist', () => expect(examples.length).toBeGreaterThanOrEqual(6));

  it('compile, strictly, against the built types', () => expect(faults).toBe(''));

  it.each(examples.filter((example) => !isServer(example)))(
    '$name runs and prints what the page says',
    async ({ name, output }) => {
      const { stdout: printed, stderr } = await run(process.execPath, [`${name}.mjs`], {
        cwd: FOLDER,
        timeout: 100_000,
        env: { ...process.env, REDIS_PORT: String(inject('redis').port) },
      });
      if (output !== undefined) expect(printed).toBe(output);
      // No example is a sign of a mistake.
      expect(stderr).not.toContain('MisuseWarning');
    },
  );

  it.each(examples.filter(isServer))('$name serves', async ({ name, code }) => {
    const port = /\.listen\((?:\{ port: )?(\d+)/.exec(code)?.[1];
    const server = spawn(process.execPath, [`${name}.mjs`], { cwd: FOLDER, stdio: 'inherit' });
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
