import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { variablesTable } from '../src/cli/variables-table.ts';
import { type ConfigError, describeVariables, readConfig } from '../src/config.ts';

const faultsOf = (environment: Record<string, string>): readonly string[] => {
  try {
    readConfig(environment);
    return [];
  } catch (error) {
    return (error as ConfigError).faults;
  }
};

test('an empty environment is a service on this machine', () => {
  expect(readConfig({})).toMatchObject({
    PORT: 8080,
    HOST: '127.0.0.1',
    BASE_URL: 'http://127.0.0.1:8080',
    AUTH_URL: 'http://127.0.0.1:8080',
    DATA_DIR: 'data',
    AUTO_MIGRATE: true,
    TRUSTED_PROXIES: [],
  });
});

test('an empty variable counts as absent', () => {
  expect(readConfig({ PORT: '', DATABASE_URL: '' })).toEqual(readConfig({}));
});

test('every fault is listed with the name of its variable, and no value is shown', () => {
  const faults = faultsOf({
    PORT: '99999',
    BASE_URL: 'https://api.example/path',
    DATABASE_URL: 'mysql://user:hunter2@host/db',
    SECRET_KEYS: 'k1:hunter2',
    AUTO_MIGRATE: 'maybe',
  });
  expect(faults.map((fault) => fault.split(':')[0])).toEqual([
    'PORT',
    'BASE_URL',
    'DATABASE_URL',
    'AUTO_MIGRATE',
    'SECRET_KEYS',
  ]);
  expect(faults.join()).not.toContain('hunter2');
});

test('a variable that others need is listed with the other faults', () => {
  const names = faultsOf({
    PORT: 'x',
    DATABASE_URL: 'postgres://h/d',
    GOOGLE_CLIENT_ID: 'a',
    MICROSOFT_CLIENT_SECRET: 'b',
  });
  expect(names.map((fault) => fault.split(':')[0])).toEqual([
    'PORT',
    'SECRET_KEYS',
    'GOOGLE_CLIENT_ID, GOOGLE_CLIENT_SECRET',
    'MICROSOFT_CLIENT_ID, MICROSOFT_CLIENT_SECRET',
  ]);
});

test('the egress policy is the strict one with DATABASE_URL, unless it is set', () => {
  const policyOf = (environment: Record<string, string>) => readConfig(environment).EGRESS_POLICY;
  const server = { DATABASE_URL: 'postgres://host/db', SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}` };
  expect([policyOf({}), policyOf(server), policyOf({ ...server, EGRESS_POLICY: 'off' })]).toEqual([
    'link-local',
    'public',
    'off',
  ]);
  expect(readConfig({ EGRESS_PORTS: '1143, 1025' }).EGRESS_PORTS).toEqual([1143, 1025]);
  for (const EGRESS_PORTS of ['0', '65536', 'imap', '25,', '2.5'])
    expect(faultsOf({ EGRESS_PORTS })).toEqual([expect.stringMatching(/^EGRESS_PORTS: must be a list of ports/)]);
});

test('DATABASE_URL needs SECRET_KEYS', () => {
  expect(faultsOf({ DATABASE_URL: 'postgres://host/db' })).toEqual([expect.stringMatching(/^SECRET_KEYS: required/)]);
});

test('a client at Google has an id and a secret, and its addresses need TLS beyond this machine', () => {
  expect(faultsOf({ GOOGLE_CLIENT_ID: 'id' })).toEqual([
    expect.stringMatching(/^GOOGLE_CLIENT_ID, GOOGLE_CLIENT_SECRET:/),
  ]);
  expect(faultsOf({ GOOGLE_CLIENT_SECRET: 's' })).toHaveLength(1);
  for (const url of ['http://login.example', 'ftp://login.example', 'https://login.example/?a=b', 'login.example'])
    expect(faultsOf({ GOOGLE_ISSUER: url })).toEqual([
      expect.stringMatching(/^GOOGLE_ISSUER: must be an https address/),
    ]);
  expect(readConfig({ GOOGLE_API_URL: 'http://127.0.0.1:9' }).GOOGLE_API_URL).toBe('http://127.0.0.1:9');
  expect(describeVariables().filter(({ name, isSecret }) => isSecret && name.startsWith('GOOGLE'))).toHaveLength(1);
});

test('SECRET_KEYS is a list of keys, the current one first', () => {
  const [first, second] = [randomBytes(32), randomBytes(32)];
  const { SECRET_KEYS } = readConfig({
    SECRET_KEYS: `k2:${first.toString('base64')}, k1:${second.toString('base64')}`,
  });
  expect(SECRET_KEYS).toEqual([
    { id: 'k2', key: first },
    { id: 'k1', key: second },
  ]);
  // What was sealed with the first one would be opened with the second.
  expect(faultsOf({ SECRET_KEYS: `k1:${first.toString('base64')},k1:${second.toString('base64')}` })).toEqual([
    'SECRET_KEYS: must give each key a different id',
  ]);
});

test('the table of variables shows values, defaults and no secret', () => {
  const table = variablesTable({ PORT: '9000', SECRET_KEYS: 'k1:hunter2', DATABASE_URL: 'postgres://u:hunter2@h/d' });
  expect(table).toMatch(/^PORT +9000 \(set\) +Port of the API/m);
  expect(table).toMatch(/^SECRET_KEYS +\*{4} \(set\)/m);
  expect(table).toMatch(/^DRAIN_MS +30000 +How long/m);
  expect(table).not.toContain('hunter2');
});

test('apps/communication-api/docs/README.md has a row for each variable, with its default and its description', () => {
  const page = readFileSync(new URL('../docs/README.md', import.meta.url), 'utf8');
  const [, table = ''] = /^\| variable \|.*\n\|.*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const rows = describeVariables().map(
    ({ name, defaultValue, description }) =>
      `| \`${name}\` | ${defaultValue === undefined ? '' : `\`${defaultValue}\` `}| ${description} |`,
  );
  expect(table.trimEnd().split('\n')).toEqual(rows);
});
