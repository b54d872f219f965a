import type { CooldownOptions, ProviderAnswers } from 'headgate/gate';
import { z } from 'zod';

/** The longest pause, in milliseconds: a year. */
const MAX_PAUSE_MS = 31_536_000_000;
const URL_OF = 'Where requests are forwarded. Its path is put in front of theirs';

const cooldown = z
  .union(
    [
      z.boolean(),
      z.strictObject({
        scope: z
          .enum(['route', 'account', 'provider'])
          .default('route')
          .describe(
            'What is paused: the account on the route, all of its routes, or every account of its provider, which is the group limits.groups.provider',
          ),
        defaultMs: z
          .int()
          .min(1)
          .max(MAX_PAUSE_MS)
          .default(1_000)
          .describe(
            'How long, without retry-after, in milliseconds. Each refusal in a row doubles it, up to a minute; maxMs bounds it',
          ),
        maxMs: z.int().min(1).max(MAX_PAUSE_MS).default(3_600_000).describe('The longest pause, in milliseconds'),
        statuses: z
          .array(z.int().min(400).max(599))
          .min(1)
          .default([429])
          .describe('The statuses of a refusal. A 503 with retry-after is one, too'),
      }),
    ],
    { error: 'must be true, false or an object such as { "scope": "account" }' },
  )
  .transform((value): false | CooldownOptions =>
    typeof value === 'object'
      ? { ...value, defaultMs: Math.min(value.defaultMs, value.maxMs) }
      : value && { scope: 'route' },
  );

/** An upstream of the config: its URL, or an object with it. */
export const upstream = z
  .union(
    [
      z.string(),
      z.strictObject({
        url: z.string().describe(URL_OF),
        cooldown: cooldown
          .default(false)
          .describe('Pauses an account whose requests it answers with 429, or 503 with retry-after, in every process'),
        providerAnswers: z
          .enum(['replace', 'pass'])
          .default('replace')
          .describe(
            'replace: its 429 becomes the error object provider/too_many_requests, with its retry-after. pass: it is passed on as it is',
          ),
      }),
    ],
    { error: 'must be a string, or an object such as { "url": "http://127.0.0.1:9000", "cooldown": true }' },
  )
  .describe(URL_OF);

/** The settings of an upstream. */
export interface UpstreamSettings {
  readonly url: string;
  readonly cooldown: false | CooldownOptions;
  readonly providerAnswers: ProviderAnswers;
}

/** An upstream of the config with every setting. */
export function upstreamSettings(given: z.output<typeof upstream>): UpstreamSettings {
  if (typeof given === 'string') return { url: given, cooldown: false, providerAnswers: true };
  return { ...given, providerAnswers: given.providerAnswers === 'pass' ? 'pass' : true };
}
