/** Every example of apps/gateway/docs/admin-api.md is sent to a gateway, and its answer has the form that the page shows. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { eventually } from 'headgate-testbed/raw-http';
import { startUpstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { type AdminGateway, startAdminGateway } from '../support/admin.ts';

const PAGE = readFileSync(resolve(import.meta.dirname, '../../docs/admin-api.md'), 'utf8');
const EXAMPLES = [
  ...PAGE.matchAll(/^```http\n([A-Z]+) (\S+)\n((?:\S+: [^\n]*\n)*)(?:\n(.*?))?```\n\n```json\n(.*?)^```/gms),
].map(([, method = '', path = '', fields = '', body, answer = '']) => ({
  method,
  path,
  fields,
  body,
  answer: JSON.parse(answer) as unknown,
}));

/** What may differ from call to call is its type only. */
function formOf(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((element) => formOf(element));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, formOf(inner, key)]));
  return /Ms$|^since$|^valueBytes$|^at$|^until$|^revision$|^name$|^host$|^version$|^startedAt$|^decisionsPerSecond$|^lastMinute$/.test(
    name,
  )
    ? typeof value
    : value;
}

let gateway: AdminGateway;
let holdsNext = false;

beforeAll(async () => {
  const upstream = await startUpstream((_seen, response) => {
    if (!holdsNext) response.end('{}');
    holdsNext = false;
  });
  gateway = await startAdminGateway(upstream.url, {
    drainMs: 0,
    idempotency: { leaseMs: 50, maxRunMs: 20, waitMs: 0 },
    accounts: [{ id: 'acc_1', application: 'app_1', provider: 'linkedin' }],
    routes: [
      { route: 'POST /api/v1/emails', account: 'query.account_id' },
      { route: 'POST /orders', idempotent: true },
    ],
    limits: {
      default: { allMethods: ['100/1m'] },
      providers: { linkedin: { routes: { 'POST /api/v1/emails': ['2/1m'] } } },
    },
  });
  for (let i = 0; i < 3; i++) await gateway.ask('POST', '/api/v1/emails?account_id=acc_1');
  holdsNext = true;
  gateway.ask('POST', '/orders', { 'idempotency-key': 'order-17' }).catch(() => {});
  const claim = '/v1/claims?application=app_1&key=order-17';
  await eventually(async () => (await gateway.admin('GET', claim)).text.includes('"orphan"'), 'the orphan');
});
afterAll(() => gateway.stop());

describe('apps/gateway/docs/admin-api.md', () => {
  it('has examples', () => expect(EXAMPLES.length).toBeGreaterThanOrEqual(7));

  it.each(EXAMPLES)('$method $path', async ({ method, path, fields, body, answer }) => {
    const headers = Object.fromEntries(fields.split('\n').flatMap((line) => (line === '' ? [] : [line.split(': ')])));
    if (body !== undefined) headers['content-type'] = 'application/json';
    const reply = await gateway.admin(method, path, { headers, ...(body === undefined ? {} : { body }) });
    if (reply.text.includes('"candidate"') && method === 'PUT')
      for (let i = 0; i < 2; i++) await gateway.ask('POST', '/api/v1/emails?account_id=acc_1');
    expect(formOf(JSON.parse(reply.text))).toEqual(formOf(answer));
  });

  it('its config is valid', () => {
    const [, text = ''] = /^```json\n(\{\n {2}"admin".*?)^```/ms.exec(PAGE) ?? [];
    const config = text.replace('{ "env": "JANE_TOKEN_SHA256" }', `"${'a'.repeat(64)}"`);
    const { admin } = checkConfig(
      JSON.parse(config.replace('{ "file": "grafana-token" }', `"${'b'.repeat(16)}"`)),
      'x',
    );
    expect(admin?.tokens.map(({ name, role }) => [name, role])).toEqual([
      ['jane', 'operator'],
      ['grafana', 'viewer'],
    ]);
  });

  it('its table has every request, with its role', async () => {
    const { paths } = JSON.parse((await gateway.admin('GET', '/v1/openapi.json')).text) as {
      paths: Record<string, Record<string, { description?: string; security: unknown[] }>>;
    };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { description = '', security }]) => {
        const role = security.length === 0 ? 'none' : /Role: (\w+)\.$/.exec(description)?.[1];
        return `${method.toUpperCase()} ${path} ${role}`;
      }),
    );
    const rows = [...PAGE.matchAll(/^\| `([A-Z]+ \/v1\/\S+)` \| (\w+) \|/gm)].map(
      ([, request, role]) => `${request} ${role}`,
    );
    expect(rows.sort()).toEqual(described.filter((row) => row.includes('/v1/')).sort());
  });
});
