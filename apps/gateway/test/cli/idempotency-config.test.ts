/** The config keys `idempotent` and `idempotency`, and an account in the body. */
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../support/check-config.ts';
import { type Config, configOf } from '../support/gateway.ts';

const route = (rest: Config, top: Config = {}) =>
  configOf('http://127.0.0.1:9', {
    routes: [{ route: 'POST /api/v1/emails', ...rest }],
    limits: { unlimited: true },
    ...top,
  });

const DEFAULTS = {
  leaseMs: 30_000,
  maxRunMs: 3_600_000,
  waitMs: 10_000,
  retentionMs: 86_400_000,
  releasedRetentionMs: 600_000,
  maxKeptBytes: 1_048_576,
  lateAnswerMs: 120_000,
  onOrphan: 'reject',
  onStoreFailure: 'refuse',
};

describe('check accepts', () => {
  it.each<[string, Config]>([
    ['an account in the body', route({ account: 'body.account_id' })],
    ['an idempotent route', route({ idempotent: true })],
    ['a route that is not idempotent', route({ idempotent: false })],
    ['overrides', route({ idempotent: { onOrphan: 'reexecute', waitMs: 0 } })],
    ['the policy `reconcile`', route({ idempotent: { onOrphan: 'reconcile' } })],
    ['a required key', route({ idempotent: { required: true } })],
    ['no overrides', route({ idempotent: {} })],
    ['every default, written out', route({ idempotent: DEFAULTS }, { idempotency: DEFAULTS })],
    ['an account in the body of an idempotent route', route({ account: 'body.account_id', idempotent: true })],
    ['a block that no route uses', route({}, { idempotency: { leaseMs: 1_000 } })],
  ])('%s', async (_title, config) => {
    const { code, all } = await checkConfig(config);
    expect({ code, all }).toMatchObject({ code: 0 });
  });
});

describe('exit 2, with the path of the error', () => {
  it.each<[string, Config, RegExp]>([
    ['a word', route({ idempotent: 'yes' }), /routes\W+0\W+idempotent/],
    ['an unknown override', route({ idempotent: { lease: 1 } }), /routes\W+0\W+idempotent\W+lease/],
    ['a lease of nothing', route({ idempotent: { leaseMs: 0 } }), /routes\W+0\W+idempotent\W+leaseMs/],
    ['a negative wait', route({ idempotent: { waitMs: -1 } }), /routes\W+0\W+idempotent\W+waitMs/],
    ['a fraction', route({}, { idempotency: { maxKeptBytes: 1.5 } }), /idempotency\W+maxKeptBytes/],
    ['more than a year (I8)', route({}, { idempotency: { retentionMs: 31_536_000_001 } }), /idempotency\W+retentionMs/],
    ['a lease of more than a day', route({}, { idempotency: { leaseMs: 86_400_001 } }), /idempotency\W+leaseMs/],
    ['a wait of more than a day, for one route', route({ idempotent: { waitMs: 86_400_001 } }), /idempotent\W+waitMs/],
    ['a required key that is a word', route({ idempotent: { required: 'yes' } }), /idempotent\W+required/],
    ['a secret for one route', route({ idempotent: { secret: 'x' } }), /idempotent\W+secret/],
    ['an empty secret', route({}, { idempotency: { secret: '' } }), /idempotency\W+secret/],
    ['a text for a number', route({}, { idempotency: { lateAnswerMs: '5s' } }), /idempotency\W+lateAnswerMs/],
    ['another policy', route({}, { idempotency: { onOrphan: 'retry' } }), /idempotency\W+onOrphan/],
    ['a policy of the limits', route({}, { idempotency: { onStoreFailure: 'local' } }), /idempotency\W+onStoreFailure/],
    ['an unknown key', route({}, { idempotency: { retries: 1 } }), /idempotency\W+retries/],
    ['a block that is not an object', route({}, { idempotency: true }), /idempotency/],
    ['a body without a name', route({ account: 'body.' }), /routes\W+0\W+account/],
  ])('%s', async (_title, config, where) => {
    const { code, all } = await checkConfig(config);
    expect({ code, all }).toEqual({ code: 2, all: expect.stringMatching(where) });
  });
});
