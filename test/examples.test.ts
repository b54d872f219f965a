import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
/** Inside the package, so that `headgate/…` is the built package itself, found through its own exports. */
const FOLDER = join(ROOT, 'test/.examples');

interface Example {
  readonly name: string;
  readonly code: string;
  /** The text block that follows, where the page says what is printed. */
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

/** Goes on until it is stopped; one that says what it prints asks itself, and ends. */
const isServer = ({ code, output }: Example) => code.includes('.listen(') && output === undefined;

beforeAll(() => {
  mkdirSync(FOLDER, { recursive: true });
  for (const { name, code } of examples) {
    writeFileSync(join(FOLDER, `${name}.ts`), code);
    const { outputText } = ts.transpileModule(code, {
      compilerOptions: {
        module: ts.ModuleKind.ESNext,
        target: ts.ScriptTarget.ES2022,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
      },
    });
    writeFileSync(join(FOLDER, `${name}.mjs`), outputText);
  }
});

afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

describe('examples in README and docs', () => {
  it('are there', () => expect(examples.length).toBeGreaterThanOrEqual(6));

  it('compile, strictly, against the built types', () => {
    const { extends: _, ...options } = { extends: '', strict: true, noEmit: true, skipLibCheck: true, types: ['node'] };
    const program = ts.createProgram(
      examples.map(({ name }) => join(FOLDER, `${name}.ts`)),
      {
        ...options,
        target: ts.ScriptTarget.ES2023,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        module: ts.ModuleKind.NodeNext,
        moduleResolution: ts.ModuleResolutionKind.NodeNext,
      },
    );
    const faults = ts.getPreEmitDiagnostics(program).map((fault) => {
      return `${fault.file?.fileName}: ${ts.flattenDiagnosticMessageText(fault.messageText, '\n')}`;
    });
    expect(faults).toEqual([]);
  });

  it.each(examples.filter((example) => !isServer(example)))(
    '$name runs and prints what the page says',
    ({ name, output }) => {
      const printed = execFileSync(process.execPath, [`${name}.mjs`], {
        cwd: FOLDER,
        encoding: 'utf8',
        timeout: 60_000,
        env: { ...process.env, REDIS_PORT: String(inject('redis').port) },
      });
      if (output !== undefined) expect(printed).toBe(output);
    },
  );

  it.each(examples.filter(isServer))('$name serves', async ({ name, code }) => {
    const port = /\.listen\((?:\{ port: )?(\d+)/.exec(code)?.[1];
    const server = spawn(process.execPath, [`${name}.mjs`], { cwd: FOLDER, stdio: 'inherit' });
    try {
      const ask = () => fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-account': 'a' } });
      const answer = await expect
        .poll(() => ask().catch(() => undefined), { timeout: 10_000 })
        .toBeDefined()
        .then(ask);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/);
    } finally {
      server.kill('SIGKILL');
    }
  });
});
