/** Every error in a config is listed with its path in the file; exit 2. */
import { describe, expect, it } from 'vitest';
import { type Path, pathPattern } from '../support/check-config.ts';
import { type Config, configOf, runHeadgate, sha256, writeConfig } from '../support/gateway.ts';

const check = (config: Config | string) => runHeadgate(['check', '--config', writeConfig(config)]);
const good = (rest: Config = {}) => configOf('http://127.0.0.1:9', rest);
const key = (rest: Config) => good({ keys: [{ token: 't', application: 'app_1', role: 'account' }, rest] });

describe('check', () => {
  it('lists every error, not only the first', async () => {
    const config = good({
      keys: [{ token: 't', application: 'app_1', role: 'root' }],
      upstream: 'nowhere',
      limits: { default: { allMethods: ['x', '1/1s'], routes: { 'GET /nope': ['1/1m'] } }, accounts: { nobody: {} } },
      maxBodyBytes: -1,
      extra: true,
    });
    const { code, all } = await check(config);
    expect(code).toBe(2);
    const paths: Path[] = [
      ['keys', 0, 'role'],
      ['upstream'],
      ['limits', 'default', 'allMethods', 0],
      ['maxBodyBytes'],
      ['extra'],
    ];
    for (const path of paths) expect(all).toMatch(pathPattern(path));
  });

  it('an error never shows a token', async () => {
    const { code, all } = await check(key({ token: 'very-secret-token', application: 5, role: 'root' }));
    expect(code).toBe(2);
    expect(all).not.toContain('very-secret-token');
  });
});

describe('the file', () => {
  it.each([
    ['serve', 'is missing'],
    ['check', 'is missing'],
  ])('%s: exit 2 if the file %s', async (command) => {
    const { code, all } = await runHeadgate([command, '--config', '/nowhere/headgate.json']);
    expect({ code, all }).toEqual({ code: 2, all: expect.stringContaining('/nowhere/headgate.json') });
  });

  it.each(['serve', 'check'])('%s: exit 2 if it is not JSON', async (command) => {
    for (const text of ['{"upstream": }', '[]']) {
      const { code, all } = await runHeadgate([command, '--config', writeConfig(text)]);
      expect({ text, code }).toEqual({ text, code: 2 });
      expect(all.trim()).not.toBe('');
      expect(all).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
    }
  });

  it('serve: exit 2 on the same errors, and never listens', async () => {
    const { code, all } = await runHeadgate([
      'serve',
      '--config',
      writeConfig(good({ upstream: 'nowhere', extra: 1 })),
    ]);
    expect(code).toBe(2);
    expect(all).toMatch(/upstream/);
    expect(all).toMatch(/extra/);
  });

  it('a good file is accepted: sha256 in either case, limits of one window, of four, of none, and of any provider', async () => {
    const config = good({
      keys: [
        { sha256: sha256('a').toUpperCase(), application: 'app_1', role: 'service', expiresAt: '2027-01-01T00:00:00Z' },
      ],
      limits: {
        default: { allMethods: ['1/1ms', '2/1s', '3/1m', '4/400d'], routes: { 'GET /api/v1/chats': [] } },
        providers: { 'any-provider': {} },
        accounts: { acc_1: { routes: {} } },
      },
    });
    const { code, all } = await check(config);
    expect({ code, all }).toEqual({ code: 0, all: expect.any(String) });
  });
});
