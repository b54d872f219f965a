import type { ClaimSettings } from 'headgate/idempotency';
import { SETTINGS } from 'headgate/internal';
import { z } from 'zod';
import { HEADER_NAME } from '../account-source.ts';
import { secret } from './secret.ts';
import { milliseconds } from './values.ts';

const SETTING_NAMES = Object.keys(SETTINGS) as (keyof ClaimSettings)[];

type Settings<Wrapped> = { readonly [Name in keyof ClaimSettings]: Wrapped };

const SETTING_HELP: Settings<string> = {
  leaseMs: 'How long a claim lasts after its gateway has died, in milliseconds. A living gateway renews it',
  maxRunMs: 'How long a gateway renews a claim, in milliseconds. After that its request is taken for dead',
  waitMs: 'How long a duplicate waits for the outcome of the original, in milliseconds',
  retentionMs: 'How long an outcome is stored, in milliseconds',
  releasedRetentionMs: 'How long a released key still refuses another request, in milliseconds',
  maxKeptBytes: 'Largest body that is stored, in bytes. After a larger one retries get 409',
  onOrphan: 'If the original died with an unknown outcome: reject and reconcile answer 409, reexecute runs the retry',
  onStoreFailure: 'While the store is down: refuse answers 503, bypass executes without protection',
};

function settingSchema(setting: keyof ClaimSettings): z.ZodType {
  const rule = SETTINGS[setting];
  const schema = 'choices' in rule ? z.enum(rule.choices) : z.int().min(rule.min).max(rule.max);
  return schema.describe(SETTING_HELP[setting]);
}

const lateAnswerMs = milliseconds(0).describe(
  'How long an upstream answer is still accepted as the outcome after the client got 504, in milliseconds',
);

/** Every idempotency setting of the library's table, with its default. */
const settings = Object.fromEntries(
  SETTING_NAMES.map((setting) => [setting, settingSchema(setting).default(SETTINGS[setting].default)]),
) as unknown as { readonly [Name in keyof ClaimSettings]: z.ZodDefault<z.ZodType<ClaimSettings[Name]>> };

/** The same settings without defaults: a route that does not set one uses the setting of `idempotency`. */
const routeSettings = Object.fromEntries(
  SETTING_NAMES.map((setting) => [setting, settingSchema(setting).optional()]),
) as unknown as { readonly [Name in keyof ClaimSettings]: z.ZodOptional<z.ZodType<ClaimSettings[Name]>> };

const compares = z
  .array(z.string().regex(HEADER_NAME, 'must be the name of a header field'))
  .max(16)
  .describe(
    'Header fields that say who sends a request, such as authorization: with another value, a key is already used. Needs a secret',
  );

/** The `idempotency` of the config. */
export const idempotency = z.strictObject({
  ...settings,
  lateAnswerMs: lateAnswerMs.default(120_000),
  compares: compares.default([]),
  secret: secret(z.string().min(1))
    .optional()
    .describe('Key of the HMAC that makes fingerprints of requests; the same for all gateways of one store'),
});

/** The `idempotent` of a route. */
export const routeIdempotency = z.strictObject({
  ...routeSettings,
  lateAnswerMs: lateAnswerMs.optional(),
  compares: compares.optional(),
  required: z.boolean().optional().describe('Whether a request without an idempotency key is refused with 400'),
});
