/** The samples of docs/decision-api.md, as a reader runs them. */
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { type DecidingGateway, startDeciding } from '../support/decisions.ts';

const run = promisify(execFile);
const PAGE = readFileSync(resolve(import.meta.dirname, '../../docs/decision-api.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, text = '']) => text);
const [config = '', answer = ''] = blocks('json');
const KEY = 'the-key-of-the-page';
let gateway: DecidingGateway;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  process.env.API_KEY = KEY;
  process.env.RECEIPT_SECRET = 'a-secret-of-receipts-0123456789abcdef';
  const { decisions, ...rest } = JSON.parse(config);
  gateway = await startDeciding({ ...rest, decisions: { ...decisions, port: 0 } });
  env = { ...process.env, HEADGATE_URL: `http://127.0.0.1:${gateway.decisionsPort}` };
});

it('curl gets the answer of the page', async () => {
  const [command = ''] = blocks('sh');
  const { stdout } = await run('sh', ['-c', command.replace(':8082', `:${gateway.decisionsPort}`)], { env });
  const vary = ({ windows, receipt, ...others }: { windows: { resetMs: number }[]; receipt: string }) => ({
    ...others,
    windows: windows.map(({ resetMs, ...window }) => ({ ...window, resetMs: typeof resetMs })),
    receipt: receipt.slice(0, 4),
  });
  expect(vary(JSON.parse(stdout))).toEqual(vary(JSON.parse(answer)));
});

it('Python executes a request once, and its second run gets the stored response', async () => {
  const [program = ''] = blocks('python');
  expect((await run('python3', ['-c', program], { env })).stdout).toBe('completed\n');
  expect((await run('python3', ['-c', program], { env })).stdout).toBe('replayed 201\n');
});

it.each(['php', 'go'])('%s asks for paths that exist; if its tools are here, they accept the sample', (language) => {
  const [program = ''] = blocks(language);
  const paths = [...program.matchAll(/'(\/v1\/[\w/]+)'|"(\/v1\/[\w/]+)"/g)].map(([, one, other]) => one ?? other);
  expect(Object.keys(gateway.document.paths)).toEqual(expect.arrayContaining(paths));
  expect(paths.length).toBeGreaterThan(0);
  const checks = { php: ['php', ['-l']], go: ['gofmt', ['-l', '-e']] } as const;
  const [command, args] = checks[language as keyof typeof checks];
  if (isThere(command)) expect(() => execFileSync(command, args, { input: program, stdio: 'pipe' })).not.toThrow();
});

it('the table of requests is that of the document', () => {
  const rows = [...PAGE.matchAll(/^\| `([A-Z]+ \/v1\/\S+)` \|/gm)].map(([, request]) => request);
  const described = Object.entries(gateway.document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(rows.sort()).toEqual(described.filter((request) => request.includes('/v1/')).sort());
});

function isThere(command: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
