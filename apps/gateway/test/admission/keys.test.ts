import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createAccounts } from '../../src/admission/accounts.ts';
import { type ApiKey, createKeys } from '../../src/admission/keys.ts';
import { checkConfig } from '../../src/config/config.ts';
import { isRefusal } from '../../src/exchange/refusal.ts';

const checked = checkConfig(
  {
    keys: [
      { sha256: createHash('sha256').update('one').digest('hex').toUpperCase(), application: 'app_1', role: 'service' },
      { token: 'two', application: 'app_2', expiresAt: '2027-01-01T01:00:00+01:00' },
      { token: 'three', application: 'app_1', role: 'scoped', scope: 'scp_a' },
    ],
    accounts: [
      { id: 'a', application: 'app_1', scope: 'scp_a' },
      { id: 'b', application: 'app_1' },
      { id: 'c', application: 'app_2', scope: 'scp_a' },
    ],
  },
  'test',
);

const typeOf = (value: unknown) => (isRefusal(value) ? value.problem('id').type : value);

const config = checked.keys;

describe('keys', () => {
  let now = Date.parse('2026-12-31T23:59:59.999Z');
  const keys = createKeys(config, () => now);

  it('are found by their hash, given in the config or made from a token', () => {
    expect(keys.authenticate('one')).toMatchObject({ application: 'app_1', role: 'service', scope: null });
    expect(keys.authenticate('three')).toMatchObject({ application: 'app_1', role: 'scoped', scope: 'scp_a' });
  });

  it('do not store the token', () => {
    expect(JSON.stringify(keys.authenticate('three'))).not.toContain('three');
  });

  it.each([
    [undefined, 'errors/missing_credentials'],
    ['', 'errors/missing_credentials'],
    ['One', 'errors/invalid_credentials'],
    ['one, one', 'errors/invalid_credentials'],
    [createHash('sha256').update('one').digest('hex'), 'errors/invalid_credentials'],
  ])('%s: 401 %s', (token, type) => {
    expect(typeOf(keys.authenticate(token))).toBe(type);
  });

  it('an unknown token costs the same among 20,000 keys as among 10', () => {
    const time = (count: number) => {
      const many = createKeys(
        Array.from({ length: count }, (_, i) => ({
          sha256: createHash('sha256').update(String(i)).digest('hex'),
          name: String(i),
          application: 'a',
          role: 'account' as const,
          scope: null,
        })),
      );
      const runs = Array.from({ length: 10 }, () => {
        const from = performance.now();
        for (let i = 0; i < 100; i++) many.authenticate('unknown');
        return performance.now() - from;
      });
      return Math.min(...runs);
    };
    time(10);
    // Comparing with every key would take more than 100 times as long.
    expect(time(20_000) / time(10)).toBeLessThan(10);
  });

  it('expire at their time, and not before', () => {
    expect(keys.authenticate('two')).toMatchObject({ application: 'app_2' });
    now += 1;
    expect(typeOf(keys.authenticate('two'))).toBe('api/expired_authorization');
  });
});

describe('accounts', () => {
  const accounts = createAccounts(checked, () => undefined);
  const key = (role: ApiKey['role'], application: string, scope: string | null = null): ApiKey => ({
    name: 'one',
    role,
    application,
    scope,
  });

  it.each([
    ['a', key('account', 'app_1'), 'a'],
    ['b', key('service', 'app_1'), 'b'],
    ['a', key('scoped', 'app_1', 'scp_a'), 'a'],
    ['b', key('scoped', 'app_1', 'scp_a'), 'errors/resource_access_restricted'],
    ['c', key('scoped', 'app_1', 'scp_a'), 'errors/invalid_resource_identifier'],
    ['a', key('service', 'app_2'), 'errors/invalid_resource_identifier'],
    ['nobody', key('service', 'app_1'), 'errors/invalid_resource_identifier'],
    ['__proto__', key('service', 'app_1'), 'errors/invalid_resource_identifier'],
  ])('%s for %j: %s', (id, apiKey, expected) => {
    const result = accounts.access(id, apiKey);
    expect(isRefusal(result) ? typeOf(result) : result.id).toBe(expected);
  });
});
