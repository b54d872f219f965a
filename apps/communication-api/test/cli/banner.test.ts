import { expect, test } from 'vitest';
import { banner } from '../../src/cli/banner.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const FACTS = {
  url: 'http://127.0.0.1:8080',
  publicUrl: 'https://api.example.com',
  program: 'npm start --',
  adminUrl: undefined,
  directory: '/srv/data',
  hasKeyFile: true,
  demonstration: undefined,
  hasApplication: true,
  nowMs: NOW,
  setUpLink: undefined,
};

test('the first start shows the token, the account, and two commands to paste', () => {
  const text = banner({ ...FACTS, demonstration: { token: 'ck_svc_dev_x', accountId: 'acc_1' } });
  expect(text).toContain('http://127.0.0.1:8080/docs');
  expect(text).toContain('/srv/data/master.key');
  const commands = text.replaceAll('\\\n', ' ').match(/^ *curl .*$/gm) ?? [];
  expect(commands).toHaveLength(2);
  const [send = '', link = ''] = commands;
  expect(send).toContain('-F account_id=acc_1');
  expect(send).toContain("-H 'X-API-KEY: ck_svc_dev_x'");
  expect(send).toMatch(/http:\/\/127\.0\.0\.1:8080\/api\/v1\/emails$/);
  expect(link).toMatch(/http:\/\/127\.0\.0\.1:8080\/v2\/auth\/link$/);
  const body = JSON.parse(/-d '([^']*)'/.exec(link)?.[1] ?? '');
  expect(body).toEqual({
    providers: 'mock',
    redirect_uri: 'http://127.0.0.1:8080/docs/',
    expires_on: '2026-01-01T01:00:00.000Z',
  });
});

test('a later start says how to make another key', () => {
  const text = banner(FACTS);
  expect(text).toContain('stop the service, then run "npm start -- create-key"');
  expect(text).toContain('dashboard https://api.example.com/dashboard');
  expect(text).not.toContain('curl');
});

test('a server without an application says how to make the first one', () => {
  const text = banner({ ...FACTS, directory: undefined, hasApplication: false, program: 'node main.js' });
  expect(text).toContain(': run "node main.js create-key --application NAME"');
  expect(text).toContain('DATABASE_URL');
});

test('as long as there is no owner, the link for the first one is shown', () => {
  const setUpLink = 'http://127.0.0.1:8080/dashboard/join/x';
  expect(banner({ ...FACTS, setUpLink })).toContain(setUpLink);
  expect(banner(FACTS)).not.toContain('/dashboard/join');
});
