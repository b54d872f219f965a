import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { createAccounts } from '../../src/admission/accounts.ts';
import { createBodyStage } from '../../src/admission/body-stage.ts';
import { WorkBudget } from '../../src/admission/work-budget.ts';
import { checkConfig } from '../../src/config/config.ts';
import { routesOf } from '../../src/config/routes.ts';
import { createExchange } from '../../src/exchange/exchange.ts';
import { makeFingerprint } from '../support/fingerprint-of.ts';

const BODY = '{"to":"ann@example.com"}';
const TYPE = 'application/json';

it.each([undefined, 'a secret of the config'])(
  'makes fingerprints with the secret %j of the config',
  async (secret) => {
    const config = checkConfig({ routes: [{ route: 'POST /api/v1/emails', idempotent: { maxRunMs: 5_000 } }] }, 'test');
    const [route] = routesOf(config);
    if (route === undefined) throw new Error('The config has no route.');
    const request = new IncomingMessage(new Socket());
    Object.assign(request, { method: 'POST', rawHeaders: ['Content-Type', TYPE, 'Idempotency-Key', 'key-1'] });
    request.headers = { 'content-type': TYPE };
    request.push(BODY);
    request.push(null);
    const exchange = createExchange('id-1', request, new ServerResponse(request), false);
    const stage = createBodyStage({
      accounts: createAccounts(config, () => undefined),
      maxBodyBytes: 1_000,
      clientTimeoutMs: 1_000,
      workBudget: new WorkBudget(1_000),
      fingerprintSecret: secret,
    });
    const key = { name: 'one', application: 'app_1', role: 'account', scope: null, expiresAtMs: 0 } as const;
    expect(await stage(exchange, { route, key, target: { path: '/api/v1/emails', query: undefined } })).toBeUndefined();
    expect(exchange.idempotent?.request).toMatchObject({
      scope: 'app_1',
      key: 'key-1',
      fingerprint: makeFingerprint(BODY, TYPE, secret === undefined ? {} : { secret }),
      maxRunMs: 5_000,
      leaseMs: 30_000,
    });
    expect(JSON.stringify(exchange.idempotent)).not.toContain('a secret of the config');
  },
);
