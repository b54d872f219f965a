import type { RateLimitFields } from 'headgate/http';
import { RATE_LIMIT_STYLES, rateLimitStyles } from 'headgate/internal';
import { z } from 'zod';
import { admin } from './schema/admin.ts';
import { clientAddress, perAddress } from './schema/client-address.ts';
import { cors } from './schema/cors.ts';
import { decisions } from './schema/decisions.ts';
import { idempotency } from './schema/idempotency.ts';
import { key } from './schema/key.ts';
import { leases } from './schema/leases.ts';
import { limits } from './schema/limits.ts';
import { listener } from './schema/listener.ts';
import { perApplication } from './schema/per-application.ts';
import { rateLimitService } from './schema/rate-limit-service.ts';
import { route } from './schema/route.ts';
import { shadow } from './schema/shadow.ts';
import { store } from './schema/store.ts';
import { upstream } from './schema/upstream.ts';
import { groups, milliseconds, name, readableBy } from './schema/values.ts';

const headers = z
  .unknown()
  .check(readableBy(rateLimitStyles))
  .meta({
    default: 'x-ratelimit',
    anyOf: [{ enum: RATE_LIMIT_STYLES }, { type: 'array', items: { enum: RATE_LIMIT_STYLES } }],
    examples: [['x-ratelimit', 'ietf']],
  })
  .transform((styles) => styles as RateLimitFields);

const log = z.strictObject({
  level: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('The least important lines that are written. A request is info; with an error of the gateway, warn'),
  application: z.boolean().default(false).describe('Whether request lines name the application'),
  account: z.boolean().default(false).describe('Whether request lines name the account. Its id may be personal data'),
});

const adjustments = z.strictObject({
  file: name
    .optional()
    .describe(
      'Where the process stores them, or with Redis or PostgreSQL a copy of what it last knew; relative to the folder of the config',
    ),
  refreshMs: z.int().min(10).max(60_000).default(500).describe('How often the store is read, in milliseconds'),
  max: z.int().min(1).max(100_000).default(10_000).describe('Most adjustments'),
});

const account = z.strictObject({
  id: name.describe('The id that requests give'),
  application: name,
  provider: name.optional().describe("Selects the provider's limits"),
  plan: name.optional().describe('What the customer pays for: selects one of limits.plans'),
  groups: groups
    .optional()
    .describe('Groups of limits.groups for which its requests count, such as { "customer": "cus_7" }: an id by name'),
  scope: name.nullable().default(null),
});

const provider = z.strictObject({
  upstream: name.describe("Name of the upstream for requests of this provider's accounts"),
});

/** The config file, section by section. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; the gateway does not read it'),
  listen: listener(8080).prefault({}).describe('The listener for requests'),
  admin: admin
    .optional()
    .describe("The operator's listener, for /metrics and the Admin API. Without it neither is served"),
  decisions: decisions
    .optional()
    .describe(
      'The listener that decides for other proxies and for programs, which forward requests themselves. Without it there is none',
    ),
  rateLimitService: rateLimitService
    .optional()
    .describe("Envoy's rate limit service, version 3, over gRPC. Without it there is none"),
  store: store
    .prefault('memory')
    .describe(
      'memory, redis://[user:password@]host:port/db, rediss://…, redis-cluster://… or postgres://user[:password]@host:port/database; or { "postgres": { "url": … } }',
    ),
  upstream: upstream.default('http://127.0.0.1:9000'),
  upstreams: z.record(z.string(), upstream).default({}).describe('Further upstreams by name, for routes and providers'),
  providers: z.record(z.string(), provider).default({}).describe('Settings by provider, as accounts name it'),
  forwardFields: z
    .array(z.string())
    .default([])
    .describe('Names of request fields that are forwarded although many servers obey them, such as x-real-ip'),
  upstreamTimeoutMs: milliseconds(1)
    .default(30_000)
    .describe("Longest wait for the head of the upstream's answer, in milliseconds"),
  upstreamAnswerMs: milliseconds(1)
    .default(300_000)
    .describe("Longest time from the head of the upstream's answer to its end, in milliseconds"),
  upstreamIdleMs: milliseconds(0)
    .default(4_000)
    .describe('How long a connection to the upstream stays open without a request, in milliseconds'),
  maxUpstreamConnections: z.int().min(1).default(256).describe('Most connections to each upstream'),
  clientTimeoutMs: milliseconds(1)
    .default(30_000)
    .describe(
      'Longest wait for more of a body that is buffered, and for a client to read more of its answer, in milliseconds',
    ),
  maxBodyBytes: z.int().min(0).default(26_214_400).describe('Largest request body, in bytes'),
  maxBufferedBytes: z
    .int()
    .min(0)
    .default(1_073_741_824)
    .describe('Most bytes of bodies and kept answers that are buffered at a time, in memory and in files'),
  maxConnections: z.int().min(1).default(10_000).describe('Most connections of clients at a time'),
  workers: z
    .union([z.int().min(1).max(1_024), z.literal('auto')], { error: 'must be a number from 1 to 1024, or "auto"' })
    .default(1)
    .describe('Processes that serve; auto: one per processor. More than 1 need Redis or PostgreSQL'),
  shutdownDelayMs: milliseconds(0)
    .default(0)
    .describe(
      'How long a terminated process still serves while /readyz says 503, so that a load balancer notices, in milliseconds',
    ),
  drainMs: milliseconds(0).default(10_000).describe('How long shutdown waits for running requests, in milliseconds'),
  log: log.prefault({}).describe('What is logged'),
  headers: headers
    .default('x-ratelimit')
    .describe('Rate-limit fields on answers: a list of x-ratelimit and ietf, or one of them alone; [] for none'),
  storeDeadlineMs: milliseconds(1).default(250).describe('Longest wait for one answer of the store, in milliseconds'),
  onStoreFailure: z
    .union(
      [
        z.enum(['local', 'admit', 'refuse']),
        z.strictObject({ local: z.strictObject({ share: z.number().gt(0).max(1) }) }),
      ],
      {
        error: 'must be local, admit, refuse or { "local": { "share": 0.1 } }',
      },
    )
    .default('local')
    .describe(
      "While the store is down: this process's own memory decides, also with a share of each max, every request is admitted, or refused",
    ),
  leases: leases
    .default(false)
    .describe(
      'Charges units of busy accounts ahead in the store, and decides from them without a call. Never over the limit; see leases.md of the library',
    ),
  idempotency: idempotency.prefault({}),
  perApplication: perApplication
    .prefault({})
    .describe('The most that one application can use of what all of them share'),
  perAddress: perAddress
    .optional()
    .describe('The allowance of each client address, all requests together, also those without a valid key or route'),
  clientAddress: clientAddress.prefault({}).describe('How the gateway finds the address of a client'),
  keys: z.array(key).default([]),
  accounts: z.array(account).default([]),
  routes: z.array(route).default([]).describe('A request for any other route gets 404'),
  cors: cors
    .optional()
    .describe(
      'Lets pages of other origins use the gateway. Without it, fields and preflights are forwarded as they are',
    ),
  strictSiblings: z
    .boolean()
    .default(false)
    .describe(
      'Whether a parameter refuses what many servers read as a literal beside it: /api/SPECIAL or /api/special;a=1 for {name} beside /api/special',
    ),
  limits: limits
    .prefault({})
    .describe('Per limit name the most specific layer wins: account, then provider, then plan, then default'),
  adjustments: adjustments
    .prefault({})
    .describe('Obeys changes of limits at run time, which all processes with the same Redis or PostgreSQL share'),
  shadow: shadow
    .optional()
    .describe('A candidate for other limits, which decides about every request beside them and changes no answer'),
});

/** A config as written in a file. */
export type ConfigInput = z.input<typeof configSchema>;

/** A config with every default filled in. */
export type Config = z.output<typeof configSchema>;

/** The place of counters and claims, as a checked config names it. */
export type StoreSetting = Config['store'];

/** A candidate of the config. */
export type ShadowConfig = NonNullable<Config['shadow']>;

/** A connected account of the config. */
export type Account = Config['accounts'][number];

/** A token of the Admin API. */
export type AdminToken = NonNullable<Config['admin']>['tokens'][number];

/** The JSON Schema of the config file: the content of `apps/gateway/docs/config.schema.json`. */
export function jsonSchema(): string {
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-2020-12' });
  return `${JSON.stringify({ title: 'Config of the headgate process', ...schema }, undefined, 2)}\n`;
}
