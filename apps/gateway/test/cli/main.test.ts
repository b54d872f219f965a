/**
 * The process's entry: arguments in, text and exit code out (0: done, 1: the system refused, 2: error in the config or
 * the command line).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from 'headgate-testbed/raw-http';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { serve } from '../../src/cli/serve.ts';
import { LISTEN_PLACES, ListenError } from '../../src/server/listen.ts';

vi.mock('../../src/cli/serve.ts', () => ({ serve: vi.fn(async () => {}) }));

const folder = mkdtempSync(join(tmpdir(), 'headgate-main-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(config: object): string {
  const path = join(folder, 'config.json');
  writeFileSync(path, JSON.stringify(config));
  return path;
}

describe('the entry', () => {
  const { argv, exitCode } = process;
  const printed = { out: '', error: '' };
  const printTo = (place: 'out' | 'error') => (text: unknown) => {
    printed[place] += text;
    return true;
  };

  beforeEach(() => {
    Object.assign(printed, { out: '', error: '' });
    vi.resetModules();
    vi.spyOn(process.stdout, 'write').mockImplementation(printTo('out'));
    vi.spyOn(process.stderr, 'write').mockImplementation(printTo('error'));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    process.argv = argv;
    process.exitCode = exitCode;
  });

  async function main(...args: string[]): Promise<void> {
    process.argv = ['node', 'headgate', ...args];
    await import('../../src/cli/main.ts');
  }

  it('prints to stdout and exits 0', async () => {
    await main('--version');
    await eventually(() => process.exitCode === 0, 'the exit code');
    expect(printed).toEqual({ out: expect.stringMatching(/^\d+\.\d+\.\d+/), error: '' });
  });

  it('prints an error to stderr and exits 2', async () => {
    await main('frob');
    await eventually(() => process.exitCode === 2, 'the exit code');
    expect(printed).toEqual({ out: '', error: expect.stringMatching(/^headgate: unknown command "frob"/) });
  });

  it('sets no exit code while it serves', async () => {
    const mocked = vi.mocked((await import('../../src/cli/serve.ts')).serve);
    mocked.mockClear();
    await main('serve', '--port', '0');
    await eventually(() => mocked.mock.calls.length === 1, 'serve');
    expect(mocked).toHaveBeenCalledWith(undefined, expect.objectContaining({ port: '0' }), undefined);
    await new Promise((resolve) => setImmediate(resolve));
    expect(process.exitCode).toBe(exitCode);
    expect(printed).toEqual({ out: '', error: '' });
  });
});

describe('runCli', () => {
  async function run(...args: string[]) {
    const texts: Record<'out' | 'error', string[]> = { out: [], error: [] };
    const terminal = {
      out: (text: string) => void texts.out.push(text),
      error: (text: string) => void texts.error.push(text),
    };
    const code = await runCli(args, terminal);
    return { code, out: texts.out.join(''), error: texts.error.join('') };
  }

  it('serve: passes the config and the flags on, and has no exit code', async () => {
    const path = file({ listen: { port: 1 } });
    expect(await run('serve', '--config', path, '--port', '2', '--host', '::1')).toEqual({
      code: undefined,
      out: '',
      error: '',
    });
    expect(serve).toHaveBeenLastCalledWith(
      expect.objectContaining({ listen: { host: '::1', port: 2 } }),
      expect.objectContaining({ port: '2', host: '::1' }),
      { name: path, hash: expect.stringMatching(/^[0-9a-f]{12}$/), watch: false },
    );
  });

  it.each([
    [['serve', '--watch'], /--watch needs --config FILE/],
    [['check', '--watch', '--config', 'FILE'], /--watch is only for serve, not for check/],
  ])('%j: exit 2', async (args, message) => {
    const path = file({});
    const { code, error } = await run(...args.map((arg) => (arg === 'FILE' ? path : arg)));
    expect({ code, error }).toEqual({ code: 2, error: expect.stringMatching(message) });
  });

  it('serve --watch: says so', async () => {
    await run('serve', '--config', file({}), '--watch');
    expect(serve).toHaveBeenLastCalledWith(
      expect.anything(),
      expect.anything(),
      expect.objectContaining({ watch: true }),
    );
  });

  it('an address in use: one sentence, exit 1', async () => {
    const cause = Object.assign(new Error('x'), { code: 'EADDRINUSE' });
    vi.mocked(serve).mockRejectedValueOnce(new ListenError({ host: 'h', port: 80 }, LISTEN_PLACES, cause));
    expect(await run('serve')).toEqual({
      code: 1,
      out: '',
      error: 'headgate: port 80 of h is in use (EADDRINUSE): choose another with --port\n',
    });
  });

  it.each([
    [new Error('odd'), /^headgate: Error: odd\n {4}at /],
    ['odd', /^headgate: odd\n$/],
  ])('any other error, %s: exit 1, with its stack', async (thrown, message) => {
    vi.mocked(serve).mockRejectedValueOnce(thrown);
    expect(await run('serve')).toEqual({ code: 1, out: '', error: expect.stringMatching(message) });
  });

  it('doctor: prints its findings; exit 1 if one is a fault', async () => {
    expect(await run('doctor')).toMatchObject({
      code: 2,
      error: expect.stringContaining('doctor needs --config FILE'),
    });
    const healthy = await run('doctor', '--config', file({}));
    expect(healthy).toEqual({ code: 0, out: expect.stringMatching(/^ok +store +in memory/), error: '' });
    const away = await run('doctor', '--config', file({ store: 'redis://127.0.0.1:1' }));
    expect(away).toEqual({ code: 1, out: expect.stringMatching(/^fault +reachable /), error: '' });
  });
});
