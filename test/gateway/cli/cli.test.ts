import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCli } from '../../../src/gateway/cli/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]): Promise<{ code: number | undefined; out: string; error: string }> {
  const printed = { out: '', error: '' };
  const code = await runCli(args, {
    out: (text) => {
      printed.out += text;
    },
    error: (text) => {
      printed.error += text;
    },
  });
  return { code, ...printed };
}

function file(config: object): string {
  const path = join(folder, 'config.json');
  writeFileSync(path, JSON.stringify(config));
  return path;
}

describe('check', () => {
  it('prints the effective limits of each provider and route, and of accounts with their own', async () => {
    const config = file({
      keys: [{ token: 'try-me', application: 'a' }],
      accounts: [
        { id: 'acc_1', application: 'a', provider: 'mock' },
        { id: 'quiet', application: 'a', provider: 'linkedin' },
        { id: 'acc \u001b[31m', application: 'a' },
      ],
      routes: [
        { route: 'POST /x', account: 'query.a' },
        { route: 'GET /y/{z}', account: 'path.z' },
        { route: 'GET /free' },
      ],
      limits: {
        default: { allMethods: ['60/1m'], routes: { 'POST /x': ['10/1m', '200/1d'] } },
        providers: { linkedin: { allMethods: [] } },
        accounts: { acc_1: { routes: { 'POST /x': [{ max: 2, durationMs: 10_000 }] } }, 'acc \u001b[31m': {} },
      },
    });
    const { code, out, error } = await run('check', '--config', config);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out.split('\n')).toEqual([
      'PROVIDER     ROUTE       ROUTE LIMIT               ALL METHODS',
      'linkedin     POST /x     10/1m, 200/1d             -',
      'linkedin     GET /y/{z}  -                         -',
      'linkedin     GET /free   not limited (no account)',
      'mock         POST /x     10/1m, 200/1d             60/1m',
      'mock         GET /y/{z}  -                         60/1m',
      'mock         GET /free   not limited (no account)',
      '(any other)  POST /x     10/1m, 200/1d             60/1m',
      '(any other)  GET /y/{z}  -                         60/1m',
      '(any other)  GET /free   not limited (no account)',
      '',
      'ACCOUNT           ROUTE       ROUTE LIMIT               ALL METHODS',
      'acc_1             POST /x     2/10s                     60/1m',
      'acc_1             GET /y/{z}  -                         60/1m',
      'acc_1             GET /free   not limited (no account)',
      '"acc \\u001b[31m"  POST /x     10/1m, 200/1d             60/1m',
      '"acc \\u001b[31m"  GET /y/{z}  -                         60/1m',
      '"acc \\u001b[31m"  GET /free   not limited (no account)',
      '',
    ]);
  });

  it('a name beyond ASCII is told in ASCII; an account without a provider and without limits of its own has none', async () => {
    const config = file({
      accounts: [
        { id: 'jos\u00e9', application: 'a' },
        { id: 'quiet', application: 'a' },
      ],
      routes: [{ route: 'GET /x', account: 'query.a' }],
      limits: { accounts: { jos\u00e9: { allMethods: ['1/1s'] } } },
    });
    const { code, out } = await run('check', '--config', config);
    expect({ code, lines: out.split('\n') }).toEqual({
      code: 0,
      lines: [
        'PROVIDER     ROUTE   ROUTE LIMIT  ALL METHODS',
        '(any other)  GET /x  -            -',
        '',
        'ACCOUNT      ROUTE   ROUTE LIMIT  ALL METHODS',
        '"jos\\u00e9"  GET /x  -            1/1s',
        '',
      ],
    });
  });

  it('without limits of an account there is no table of accounts', async () => {
    const { out } = await run('check', '--config', file({ routes: [{ route: 'GET /x', account: 'query.a' }] }));
    expect(out).toBe('PROVIDER     ROUTE   ROUTE LIMIT  ALL METHODS\n(any other)  GET /x  -            -\n');
  });

  it('S1: All methods that the routes of an account share are told from others', async () => {
    const routes = [{ route: 'GET /x', account: 'query.a' }];
    const limits = { default: { allMethods: { windows: ['5/1m'], scope: 'account' } } };
    const { out } = await run('check', '--config', file({ routes, limits }));
    expect(out).toBe(
      'PROVIDER     ROUTE   ROUTE LIMIT  ALL METHODS\n(any other)  GET /x  -            5/1m (shared by routes)\n',
    );
  });

  it('a provider that nothing is recommended for has its own limits, and no others', async () => {
    const limits = { recommended: true, providers: { own: { routes: { 'GET /x': ['1/1s'] } } } };
    const config = file({ routes: [{ route: 'GET /x', account: 'query.a' }], limits });
    const lines = (await run('check', '--config', config)).out.split('\n');
    expect(lines.filter((line) => /^(own|mock|linkedin) /.test(line))).toEqual([
      'linkedin     GET /x  -            20/1m, 800/1d',
      'mock         GET /x  -            60/1m, 5000/1d',
      'own          GET /x  1/1s         -',
    ]);
  });

  it('notes, beside the table, what a config hardly means', async () => {
    const config = file({
      keys: [{ token: 'try-me', application: 'a' }],
      accounts: [
        { id: 'acc_1', application: 'a', provider: 'mock' },
        { id: 'acc_2', application: 'b' },
      ],
      routes: [{ route: 'GET /chats/:id', account: 'query.a' }],
      limits: { providers: { 'out look': { allMethods: ['1/1s'] }, mock: {} } },
    });
    const { code, out, error } = await run('check', '--config', config);
    expect([code, out.startsWith('PROVIDER ')]).toEqual([0, true]);
    expect(error.split('\n')).toEqual([
      'note: accounts[1].application: no key is of this application: nobody can reach it',
      'note: routes[0].route: :id is matched letter by letter; a parameter is {id}',
      'note: limits.providers["out look"]: no account of the file has this provider',
      '',
    ]);
    const { error: bare } = await run('check', '--config', file({ routes: [{ route: 'GET /x', account: 'query.a' }] }));
    expect(bare).toBe(
      'note: keys: the config has no keys: no request will get through\n' +
        'note: accounts: the config has no accounts: no request of a route with an account will get through\n',
    );
    expect((await run('check', '--config', file({}))).error).toMatch(/^note: keys: .*\nnote: routes: .*\n$/);
  });

  it('lists every fault: exit 2', async () => {
    const { code, out, error } = await run('check', '--config', file({ wat: 1, headers: 5 }), '--port', 'x');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(error).toMatch(/has 3 faults:\n {2}--port: .*\n {2}headers: .*\n {2}wat: .*\n$/);
  });
});

describe('the command line', () => {
  it('helps, and tells its version', async () => {
    expect(await run('--help')).toMatchObject({
      code: 0,
      out: expect.stringContaining('headgate serve [--config FILE]'),
    });
    expect(await run('--version')).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  });

  it.each([
    [[], /a command is missing/],
    [['frob'], /"frob" is no command/],
    [['serve', 'more'], /"more" is too much/],
    [['check'], /check needs --config FILE/],
    [['serve', '--frob'], /Unknown option '--frob'/],
    [['serve', '--port'], /'--port <value>' argument missing/],
    [['serve', '--port', '-1'], /'--port' argument is ambiguous/],
    [['check', '--config', '/nowhere/config.json'], /there is no such file/],
    [['check', '--config', 'a.json', '--config', 'b.json'], /--config is given more than once/],
    [['check', '--config', folder], /it cannot be read \(EISDIR\)/],
    [['serve', '--store', 'redis:h'], /--store: must be memory, redis:/],
  ])('%j: one clear sentence, exit 2', async (args, message) => {
    const { code, out, error } = await run(...args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(error).toMatch(message);
  });
});
