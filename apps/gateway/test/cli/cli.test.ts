import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';

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

/** What `check` prints behind the table of routes. */
const limitsIn = (out: string): string => out.slice(out.indexOf('\n\n') + 2);

describe('check', () => {
  it('prints the account and the upstream of each route, and the upstream of each provider', async () => {
    const config = file({
      store: 'redis://127.0.0.1:6379/0',
      upstream: 'http://main:9000',
      upstreams: { social: 'http://social:9000/base', 'files \u001b': 'https://files' },
      providers: { linkedin: { upstream: 'social' }, x: { upstream: 'default' } },
      accounts: [
        { id: 'acc_1', application: 'a', provider: 'linkedin' },
        { id: 'acc_2', application: 'a', provider: 'x' },
      ],
      keys: [{ token: 'try-me', application: 'a' }],
      routes: [
        { route: 'POST /x', account: 'query.a', idempotent: { required: true } },
        { route: 'GET /files/*', account: 'query.a', upstream: 'files \u001b' },
        { route: 'GET /free', account: 'none' },
      ],
      limits: { unlimited: true },
    });
    const { code, out, error } = await run('check', '--config', config);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out.split('\n').slice(0, 9)).toEqual([
      'ROUTE         ACCOUNT  IDEMPOTENT  UPSTREAM',
      'POST /x       query.a  yes         http://main:9000 (default), or by provider',
      'GET /files/*  query.a  -           https://files ("files \\u001b")',
      'GET /free     none     -           http://main:9000 (default)',
      '',
      'PROVIDER  UPSTREAM',
      'linkedin  http://social:9000/base (social)',
      'x         http://main:9000 (default)',
      '',
    ]);
    expect(out).toContain('All paths of a route that ends in /* share its counts.');
  });

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
        { route: 'GET /free', account: 'none' },
      ],
      limits: {
        default: { allMethods: ['60/1m'], routes: { 'POST /x': ['10/1m', '200/1d'] } },
        providers: { linkedin: { allMethods: [] } },
        accounts: { acc_1: { routes: { 'POST /x': [{ max: 2, durationMs: 10_000 }] } }, 'acc \u001b[31m': {} },
      },
    });
    const { code, out, error } = await run('check', '--config', config);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(limitsIn(out).split('\n')).toEqual([
      'PROVIDER     ROUTE       ROUTE LIMIT               ALL METHODS',
      'linkedin     POST /x     10/1m, 200/1d             -',
      'linkedin     GET /y/{z}  not limited',
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

  it('a name beyond ASCII is escaped; an account without a provider and without its own limits has no row', async () => {
    const config = file({
      accounts: [
        { id: 'jos\u00e9', application: 'a' },
        { id: 'quiet', application: 'a' },
      ],
      routes: [{ route: 'GET /x', account: 'query.a' }],
      limits: { accounts: { jos\u00e9: { allMethods: ['1/1s'] } } },
    });
    const { code, out } = await run('check', '--config', config);
    expect({ code, lines: limitsIn(out).split('\n') }).toEqual({
      code: 0,
      lines: [
        'PROVIDER     ROUTE   ROUTE LIMIT  ALL METHODS',
        '(any other)  GET /x  not limited',
        '',
        'ACCOUNT      ROUTE   ROUTE LIMIT  ALL METHODS',
        '"jos\\u00e9"  GET /x  -            1/1s',
        '',
      ],
    });
  });

  it('prints the limits of each plan of a customer, and of an account with its plan', async () => {
    const config = file({
      accounts: [{ id: 'acc_1', application: 'a', plan: 'pro' }],
      routes: [{ route: 'GET /x', account: 'query.a' }],
      limits: {
        default: { allMethods: ['6/1m'] },
        plans: { pro: { allMethods: ['60/1m'] }, free: {} },
        accounts: { acc_1: { routes: { 'GET /x': ['2/1s'] } } },
      },
    });
    const { code, out, error } = await run('check', '--config', config);
    expect({ code, lines: limitsIn(out).split('\n') }).toEqual({
      code: 0,
      lines: [
        'PROVIDER     ROUTE   ROUTE LIMIT  ALL METHODS',
        '(any other)  GET /x  -            6/1m',
        '',
        'PLAN  ROUTE   ROUTE LIMIT  ALL METHODS',
        'free  GET /x  -            6/1m',
        'pro   GET /x  -            60/1m',
        '',
        'ACCOUNT  ROUTE   ROUTE LIMIT  ALL METHODS',
        'acc_1    GET /x  2/1s         60/1m',
        '',
      ],
    });
    expect(error).toContain('limits.plans.free: no account or key of the file has this plan');
  });

  it('without limits for an account there is no table of accounts', async () => {
    const config = file({ routes: [{ route: 'GET /x', account: 'query.a' }], limits: { unlimited: true } });
    const { out } = await run('check', '--config', config);
    expect(limitsIn(out)).toBe('PROVIDER     ROUTE   ROUTE LIMIT  ALL METHODS\n(any other)  GET /x  not limited\n');
  });

  it('what counts by key or address has no provider; then the limits per address', async () => {
    const routes = [
      { route: 'POST /login', public: true },
      { route: 'GET /x', account: 'key' },
      { route: 'GET /y', account: 'query.a' },
    ];
    const keys = [{ name: 'one', token: 'one', application: 'a' }];
    const accounts = [{ id: 'acc_1', application: 'a', provider: 'mock' }];
    const limits = { default: { allMethods: ['5/1m'] }, accounts: { 'key:one': { allMethods: ['9/1m'] } } };
    const config = { keys, accounts, routes, limits, perAddress: { windows: ['60/1m', '900/1h'], perNetwork: [] } };
    const { out } = await run('check', '--config', file(config));
    expect(limitsIn(out).split('\n')).toEqual([
      'PROVIDER     ROUTE        ROUTE LIMIT  ALL METHODS',
      'mock         GET /y       -            5/1m',
      '(any other)  POST /login  -            5/1m',
      '(any other)  GET /x       -            5/1m',
      '(any other)  GET /y       -            5/1m',
      '',
      'ACCOUNT  ROUTE   ROUTE LIMIT  ALL METHODS',
      'key:one  GET /x  -            9/1m',
      '',
      'PER ADDRESS    PER IPV6 /48',
      '60/1m, 900/1h  -',
      '',
    ]);
  });

  it('S1: marks a limit for all methods that the routes of an account share', async () => {
    const routes = [{ route: 'GET /x', account: 'query.a' }];
    const limits = { default: { allMethods: { windows: ['5/1m'], scope: 'account' } } };
    const { out } = await run('check', '--config', file({ routes, limits }));
    expect(limitsIn(out)).toBe(
      'PROVIDER     ROUTE   ROUTE LIMIT  ALL METHODS\n(any other)  GET /x  -            5/1m (shared by routes)\n',
    );
  });

  it('S28, S29, S31: shows requests in flight, groups, and the share of a lane of a route', async () => {
    const routes = [
      { route: 'GET /x', account: 'key' },
      { route: 'GET /bulk', account: 'key', lane: 'bulk', groups: { upstream: 'mail' } },
    ];
    const keys = [{ name: 'one', token: 'one', application: 'a' }];
    const limits = {
      default: {
        allMethods: { windows: ['20/1m'], scope: 'account', inFlight: 4 },
        routes: { 'GET /x': { inFlight: 1 } },
      },
      groups: { upstream: { allMethods: ['50/1m'] } },
      lanes: { bulk: 0.5 },
    };
    const { out } = await run('check', '--config', file({ keys, routes, limits }));
    expect(limitsIn(out).split('\n')).toEqual([
      'PROVIDER     ROUTE      ROUTE LIMIT  ALL METHODS',
      '(any other)  GET /x     1 in flight  20/1m (shared by routes), 4 in flight',
      '(any other)  GET /bulk  -            10/1m (shared by routes), 2 in flight',
      '',
      'GROUP     ROUTE      ROUTE LIMIT  ALL METHODS',
      'upstream  GET /bulk  -            25/1m',
      '',
    ]);
  });

  it('a provider without recommended limits has only its own limits', async () => {
    const limits = { recommended: true, providers: { own: { routes: { 'GET /x': ['1/1s'] } } } };
    const config = file({ routes: [{ route: 'GET /x', account: 'query.a' }], limits });
    const lines = limitsIn((await run('check', '--config', config)).out).split('\n');
    expect(lines.filter((line) => /^(own|mock|linkedin) /.test(line))).toEqual([
      'linkedin     GET /x  -            20/1m, 800/1d',
      'mock         GET /x  -            60/1m, 5000/1d',
      'own          GET /x  1/1s         -',
    ]);
  });

  it('warns, beside the table, about settings that are probably mistakes', async () => {
    const config = file({
      keys: [{ token: 'try-me', application: 'a' }],
      accounts: [
        { id: 'acc_1', application: 'a', provider: 'mock' },
        { id: 'acc_2', application: 'b', provider: 'outlook' },
      ],
      routes: [{ route: 'GET /chats/:id', account: 'query.a' }],
      limits: { providers: { 'out look': { allMethods: ['1/1s'] }, mock: { allMethods: ['1/1s'] } } },
    });
    const { code, out, error } = await run('check', '--config', config);
    expect([code, limitsIn(out).startsWith('PROVIDER ')]).toEqual([0, true]);
    expect(error.split('\n')).toEqual([
      'warning: accounts[1].application: no key belongs to this application, so no request can reach the account',
      expect.stringMatching(/^warning: limits.default.allMethods: requests of account acc_2 to GET .* are not limited/),
      'warning: routes[0].route: :id is matched letter by letter; write a parameter as {id}',
      'warning: limits.providers["out look"]: no account of the file has this provider, did you mean "outlook"?',
      '',
    ]);
    const unlimited = file({ routes: [{ route: 'GET /x', account: 'query.a' }], limits: { unlimited: true } });
    const { error: bare } = await run('check', '--config', unlimited);
    expect(bare).toBe(
      'warning: keys: the config has no keys, so every request is refused\n' +
        'warning: accounts: the config has no accounts, so requests for a route with an account are refused\n',
    );
    expect((await run('check', '--config', file({}))).error).toMatch(/^warning: keys: .*\nwarning: routes: .*\n$/);
  });

  it('never prints the secret of the fingerprints', async () => {
    for (const idempotency of [
      { secret: 'hush-hush' },
      { secret: 'hush-hush', leaseMs: 0 },
      { secret: ['hush-hush'] },
    ]) {
      for (const command of ['check', 'doctor']) {
        const { out, error } = await run(command, '--config', file({ idempotency }));
        expect(out + error).not.toBe('');
        expect(out + error).not.toContain('hush');
      }
    }
  });

  it('lists every error: exit 2', async () => {
    const { code, out, error } = await run('check', '--config', file({ wat: 1, headers: 5 }), '--port', 'x');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(error).toMatch(/has 3 errors:\n {2}--port: .*\n {2}headers: .*\n {2}wat: .*\n$/);
  });
});

describe('the command line', () => {
  it('prints help, and its version', async () => {
    expect(await run('--help')).toMatchObject({
      code: 0,
      out: expect.stringContaining('headgate serve [--config FILE]'),
    });
    expect(await run('serve', '--help')).toMatchObject({ code: 0, out: expect.stringContaining('--upstream') });
    expect(await run('--version')).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  });

  it.each([
    [[], /a command is missing/],
    [
      ['servee'],
      /unknown command "servee" \(use serve, check, doctor, migrate, health, limits, simulate or recommend\)/,
    ],
    [['serve', 'more'], /unexpected "more": serve takes only flags/],
    [['check'], /check needs --config FILE/],
    [['serve', '--frob'], /unknown flag --frob \(use --config, --host, .* or --version\)/],
    [['serve', '--prot', '1'], /unknown flag --prot, did you mean --port\?/],
    [['serve', '--upstreem=http://a'], /unknown flag --upstreem, did you mean --upstream\?/],
    [['serve', '--port'], /'--port <value>' argument missing/],
    [['serve', '--port', '-1'], /'--port' argument is ambiguous/],
    [['check', '--config', '/nowhere/config.json'], /the file does not exist/],
    [['check', '--config', 'a.json', '--config', 'b.json'], /--config is given more than once/],
    [['check', '--config', folder], /the file cannot be read \(EISDIR\)/],
    [['serve', '--store', 'redis:h'], /--store: must be memory, redis:/],
    [['serve', '--port', 'abc'], /port/],
    [['serve', '--upstream', 'nowhere'], /upstream/],
    [['serve', '--store', 'floppy'], /store/],
    [['serve', 'now'], /now/],
    [['serve', '--config'], /--config/],
    [['check', '--verbose'], /--verbose/],
  ])('%j: one sentence, exit 2', async (args, message) => {
    const { code, out, error } = await run(...args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(error).toMatch(message);
  });
});
