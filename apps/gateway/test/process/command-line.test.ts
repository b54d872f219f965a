/** Commands and flags. Flags override the file, and the file overrides the defaults. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { configOf, freePort, runHeadgate, serve, startGateway, writeConfig } from '../support/gateway.ts';

const { version } = JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

describe('help and version', () => {
  it('--help names every command and every flag, exit 0', async () => {
    const { code, stdout } = await runHeadgate(['--help']);
    expect(code).toBe(0);
    for (const word of [
      'serve',
      'check',
      '--config',
      '--host',
      '--port',
      '--upstream',
      '--store',
      '--help',
      '--version',
    ]) {
      expect(stdout).toContain(word);
    }
  });

  it("--version is package.json's, exit 0", async () => {
    const { code, stdout } = await runHeadgate(['--version']);
    expect({ code, text: stdout.trim().replace(/^headgate\s+v?/, '') }).toEqual({ code: 0, text: version });
  });
});

// cli.test.ts has every other mistake.
describe('exit 2, and the message has the wrong word', () => {
  it.each([
    [['bake'], 'bake'],
    [['serve', '--port', '70000'], 'port'],
  ])('%j', async (args, word) => {
    const { code, stdout, stderr } = await runHeadgate(args);
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(word) });
  });
});

describe('flags override the file', () => {
  it('--port and --upstream', async () => {
    const upstream = await startUpstream();
    const [filePort, flagPort] = [await freePort(), await freePort()];
    const file = writeConfig({ ...configOf('http://127.0.0.1:1'), listen: { port: filePort } });
    const gateway = await serve(
      ['--config', file, '--port', String(flagPort), '--upstream', `${upstream.url}/flag`],
      flagPort,
    );
    expect((await gateway.ask('GET', '/api/v1/open')).status).toBe(200);
    expect(upstream.last().url).toBe('/flag/api/v1/open');
    await gateway.stop();
  });

  it('--host; --flag=value is the same as --flag value', async () => {
    const port = await freePort();
    const file = writeConfig({ ...configOf('http://127.0.0.1:1'), listen: { host: '192.0.2.1', port } });
    const gateway = await serve([`--config=${file}`, '--host=127.0.0.1'], port);
    expect((await gateway.stop()).code).toBe(0);
  });

  it('--store', async () => {
    const upstream = await startUpstream();
    const gateway = await startGateway(configOf(upstream.url, { store: 'redis://127.0.0.1:1' }), ['--store', 'memory']);
    expect((await gateway.ask('GET', '/api/v1/chats?account_id=acc_1')).headers['x-ratelimit-limit']).toBe('1000');
    await gateway.stop();
  });
});

describe('check', () => {
  it('prints the effective limits by provider and route, exit 0', async () => {
    const config = configOf('http://127.0.0.1:1', {
      limits: {
        default: { allMethods: ['60/1m', '5000/1d'], routes: { 'POST /api/v1/messages': ['10/1m'] } },
        providers: { linkedin: { allMethods: ['30/1m'] } },
        accounts: { acc_7: { routes: { 'GET /api/v1/chats': ['2/10s'] } } },
      },
    });
    const { code, stdout } = await runHeadgate(['check', '--config', writeConfig(config)]);
    expect(code).toBe(0);
    for (const word of [
      'linkedin',
      'POST /api/v1/messages',
      'GET /api/v1/chats',
      '60/1m',
      '5000/1d',
      '10/1m',
      '30/1m',
      '2/10s',
    ]) {
      expect(stdout).toContain(word);
    }
    const line = stdout.split('\n').find((text) => text.includes('linkedin') && text.includes('POST /api/v1/messages'));
    if (line !== undefined) expect(line).toContain('30/1m');
  });
});

describe('a host that is not of this machine', () => {
  it.each([
    ['300.1.1.1', 'the host 300.1.1.1 is unknown'],
    ['192.0.2.1', 'the host 192.0.2.1 is not an address of this machine (EADDRNOTAVAIL)'],
  ])('--host %s: the message blames the host, not the port', async (host, reason) => {
    const { code, stderr } = await runHeadgate(['serve', '--host', host, '--port', '0']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(reason) });
    expect(stderr).toMatch(/: choose another with --host\n$/);
    expect(stderr).not.toContain('port');
  });

  it("that of the admin listener is the config's", async () => {
    const config = { ...configOf('http://127.0.0.1:1'), listen: { port: 0 }, admin: { host: '192.0.2.1', port: 0 } };
    const { code, stderr } = await runHeadgate(['serve', '--config', writeConfig(config)]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/192\.0\.2\.1 .*: choose another with admin\.host in the config\n$/);
  });
});

describe('a port in use', () => {
  it('ends with a message about it, not with a stack trace', async () => {
    const port = await freePort();
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(port, '127.0.0.1', resolve));
    const file = writeConfig({ ...configOf('http://127.0.0.1:1'), listen: { port } });
    const { code, all } = await runHeadgate(['serve', '--config', file]);
    holder.close();
    expect(code).toBeGreaterThan(0);
    expect(all).toContain(String(port));
    expect(all).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
  });
});
