import { z } from 'zod';
import { parseWindow } from '../../core/limit.ts';
import { RATE_LIMIT_STYLES, type RateLimitFields, rateLimitStyles } from '../../http/rate-limit-fields.ts';

const MAX_TIMER_MS = 2_147_483_647;
const DAY_MS = 86_400_000;

/** A span that a timer of Node's can wait for. */
const milliseconds = (least: number) => z.int().min(least).max(MAX_TIMER_MS);
const port = z.int().min(0).max(65_535);
const name = z.string().min(1);

const windowText = z
  .string()
  .check((context) => {
    const reason = reasonAgainst(() => parseWindow(context.value));
    if (reason !== undefined) context.issues.push({ code: 'custom', message: reason, input: context.value });
  })
  .meta({ pattern: '^(0|[1-9]\\d*)/[1-9]\\d*(ms|s|m|h|d)$', examples: ['60/1m'] });

const windowObject = z.strictObject({
  max: z.int().min(0).describe('Most requests in the window; 0 rejects always'),
  durationMs: z.int().min(1).describe('Length of the window in milliseconds'),
});

const limit = z
  .array(z.union([windowText, windowObject], { error: 'must be "60/1m" or { "max": 60, "durationMs": 60000 }' }))
  .describe('Windows that a request must fit, all of them; [] says "no such limit here"');

const scopedLimit = z.strictObject({
  windows: limit,
  scope: z
    .enum(['route', 'account'])
    .default('route')
    .describe('route: each route has a count of its own; account: one count, which the routes of an account share'),
});

const layer = z.strictObject({
  allMethods: z
    .union([limit, scopedLimit], { error: 'must be an array of windows, or { "windows": […], "scope": "account" }' })
    .optional()
    .describe('Applies to every limited route alike, each with a count of its own unless its scope says otherwise'),
  routes: z
    .record(z.string(), limit)
    .optional()
    .describe('Additional limits by route, as in { "POST /api/v1/emails": ["10/1m", "200/1d"] }'),
});

const headers = z
  .unknown()
  .check((context) => {
    const reason = reasonAgainst(() => rateLimitStyles(context.value));
    if (reason !== undefined) context.issues.push({ code: 'custom', message: reason, input: context.value });
  })
  .meta({
    default: 'x-ratelimit',
    anyOf: [{ enum: RATE_LIMIT_STYLES }, { type: 'array', items: { enum: RATE_LIMIT_STYLES } }],
    examples: [['x-ratelimit', 'ietf']],
  })
  .transform((styles) => styles as RateLimitFields);

const listener = (defaultPort: number) =>
  z.strictObject({
    host: name.default('127.0.0.1').describe('Address to listen on'),
    port: port.default(defaultPort).describe('0 takes any free port; the log says which'),
  });

const onOrphan = z.enum(['reject', 'reexecute', 'reconcile']);

const idempotency = z.strictObject({
  leaseMs: milliseconds(1).default(30_000),
  waitMs: milliseconds(0).default(10_000),
  retentionMs: z.int().min(1).max(DAY_MS).default(DAY_MS),
  maxKeptBytes: z.int().min(0).default(1_048_576),
  lateAnswerMs: milliseconds(0).default(120_000),
  onOrphan: onOrphan.default('reject'),
  onStoreFailure: z.enum(['refuse', 'bypass']).default('refuse'),
});

/** Without the defaults: what a route does not say is left to `idempotency`. */
const routeIdempotency = z.strictObject({
  leaseMs: milliseconds(1).optional(),
  waitMs: milliseconds(0).optional(),
  retentionMs: z.int().min(1).max(DAY_MS).optional(),
  maxKeptBytes: z.int().min(0).optional(),
  lateAnswerMs: milliseconds(0).optional(),
  onOrphan: onOrphan.optional(),
  onStoreFailure: z.enum(['refuse', 'bypass']).optional(),
});

const key = z.strictObject({
  sha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'must be the 64 hexadecimal digits of the SHA-256 of a token')
    .optional()
    .describe('SHA-256 of the token, in hexadecimal'),
  token: z
    .string()
    .regex(/^[\x21-\x7e]{1,1024}$/, 'must be 1 to 1,024 printable ASCII characters without spaces')
    .optional()
    .describe('The token itself, for trying things out; hashed at start and forgotten'),
  application: name.describe('Application that the key belongs to; it reaches only accounts of it'),
  role: z.enum(['service', 'account', 'scoped']).default('account'),
  scope: name.nullable().default(null).describe('The one scope of a scoped key'),
  expiresAt: z.iso
    .datetime({ offset: true, error: 'must be a time in ISO 8601 with its offset, such as "2027-01-01T00:00:00Z"' })
    .optional()
    .describe('From then on the key is refused; absent: never'),
});

const account = z.strictObject({
  id: name.describe('As requests name it'),
  application: name,
  provider: name.optional().describe("Selects the provider's limits"),
  scope: name.nullable().default(null),
});

const route = z.strictObject({
  route: z.string().describe('Method and path; {name} stands for one segment, as in "GET /api/v1/chats/{chat_id}"'),
  account: z
    .string()
    .regex(/^(path|query|header|body)\..+$/s, 'must be path.NAME, query.NAME, header.NAME or body.NAME')
    .optional()
    .describe('Where the account stands: path.NAME, query.NAME, header.NAME or body.NAME. Absent: not limited'),
  idempotent: z.union([z.boolean(), routeIdempotency], { error: 'must be true, false or an object' }).optional(),
});

/** The config file (contract.md), section by section. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; not read'),
  listen: listener(8080).prefault({}).describe('Where requests come in'),
  admin: listener(8081).optional().describe("The operator's listener, for /metrics; absent: none"),
  store: z
    .string()
    .default('memory')
    .describe('memory, redis://[user:password@]host:port/db, rediss://…, redis-cluster://…'),
  upstream: z
    .string()
    .default('http://127.0.0.1:9000')
    .describe('Where requests go; its path is put in front of theirs'),
  upstreamTimeoutMs: milliseconds(1).default(30_000).describe("Longest wait for the head of the upstream's answer"),
  maxBodyBytes: z.int().min(0).default(26_214_400).describe('Largest body of a request'),
  drainMs: milliseconds(0).default(10_000).describe('How long a terminated process waits for what runs'),
  headers: headers
    .default('x-ratelimit')
    .describe('Rate-limit fields on answers: a list of x-ratelimit and ietf, or one of them alone; [] for none'),
  storeDeadlineMs: milliseconds(1).default(250).describe('Longest wait for the store'),
  onStoreFailure: z.enum(['local', 'admit', 'refuse']).default('local').describe('Who decides while the store is away'),
  idempotency: idempotency.prefault({}),
  keys: z.array(key).default([]),
  accounts: z.array(account).default([]),
  routes: z.array(route).default([]).describe('Everything else is answered 404'),
  limits: z
    .strictObject({
      recommended: z
        .boolean()
        .default(false)
        .describe(
          "Start from headgate's recommended limits of each provider; `providers` overrides them by limit name",
        ),
      default: layer.default({}),
      providers: z.record(z.string(), layer).default({}),
      accounts: z.record(z.string(), layer).default({}),
    })
    .prefault({})
    .describe('The most specific limit wins, per limit name: account, then provider, then default'),
});

/** A config as it stands in a file. */
export type ConfigInput = z.input<typeof configSchema>;

/** A config whose every default is filled in. */
export type Config = z.output<typeof configSchema>;

/** The JSON Schema of the config file, as `docs/config.schema.json` has it. */
export function jsonSchema(): string {
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-2020-12' });
  return `${JSON.stringify({ title: 'Config of the headgate process', ...schema }, undefined, 2)}\n`;
}

/** The message of what `read` throws, without the place in front of it. */
function reasonAgainst(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return (error as Error).message.replace(/^(window|headers): /, '');
  }
}
