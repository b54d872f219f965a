import { z } from 'zod';
import { parseWindow } from '../../core/limit.ts';
import { RATE_LIMIT_STYLES, type RateLimitFields, rateLimitStyles } from '../../http/rate-limit-fields.ts';
import { type ClaimSettings, SETTING_NAMES, SETTINGS, type SettingRule } from '../../idempotency/settings.ts';
import { digestOfToken } from './token-digest.ts';

/** Longest time that a timer of Node can wait for, in milliseconds. */
export const MAX_TIMER_MS = 2_147_483_647;

/** A time that Node's timers can wait for. */
const milliseconds = (min: number) => z.int().min(min).max(MAX_TIMER_MS);
const port = z.int().min(0).max(65_535);
const name = z.string().min(1);

const windowText = z
  .string()
  .check((context) => {
    const reason = errorOf(() => parseWindow(context.value));
    if (reason !== undefined) context.issues.push({ code: 'custom', message: reason, input: context.value });
  })
  .meta({ pattern: '^(0|[1-9]\\d*)/[1-9]\\d*(ms|s|m|h|d)$', examples: ['60/1m'] });

const windowObject = z.strictObject({
  max: z.int().min(0).describe('Largest number of requests in the window. 0 rejects every request'),
  durationMs: z.int().min(1).describe('Length of the window in milliseconds'),
});

const limit = z
  .array(z.union([windowText, windowObject], { error: 'must be "60/1m" or { "max": 60, "durationMs": 60000 }' }))
  .describe('A request must fit into all of these windows. [] means no such limit here');

const scopedLimit = z.strictObject({
  windows: limit,
  scope: z
    .enum(['route', 'account'])
    .default('route')
    .describe('route: each route has its own count. account: the routes of an account share one count'),
});

const layer = z.strictObject({
  allMethods: z
    .union([limit, scopedLimit], { error: 'must be an array of windows, or { "windows": […], "scope": "account" }' })
    .optional()
    .describe('Applies to every limited route. Each route has its own count, unless the scope is "account"'),
  routes: z
    .record(z.string(), limit)
    .optional()
    .describe('Additional limits by route, as in { "POST /api/v1/emails": ["10/1m", "200/1d"] }'),
});

const headers = z
  .unknown()
  .check((context) => {
    const reason = errorOf(() => rateLimitStyles(context.value));
    if (reason !== undefined) context.issues.push({ code: 'custom', message: reason, input: context.value });
  })
  .meta({
    default: 'x-ratelimit',
    anyOf: [{ enum: RATE_LIMIT_STYLES }, { type: 'array', items: { enum: RATE_LIMIT_STYLES } }],
    examples: [['x-ratelimit', 'ietf']],
  })
  .transform((styles) => styles as RateLimitFields);

/** A checked config has the content of the files in place of their names. */
const tls = z.strictObject({
  cert: name.describe("File with the certificate and its intermediates, in PEM, relative to the config's folder"),
  key: name.describe('File with the private key of the certificate, in PEM, without a passphrase'),
  clientCa: name
    .optional()
    .describe('File with certificate authorities, in PEM. With it, each client must have a certificate of one of them'),
  minVersion: z.enum(['1.2', '1.3']).default('1.2').describe('Oldest version of TLS that is accepted'),
});

const listener = (defaultPort: number) =>
  z.strictObject({
    host: name.default('127.0.0.1').describe('Address to listen on'),
    port: port.default(defaultPort).describe('0 takes any free port; the log has its number'),
    tls: tls.optional().describe('Serves HTTPS. Without it the listener serves HTTP'),
  });

const REFERENCE_HELP = 'Where a secret is read, in place of the secret itself';

/** `{ "env": "NAME" }` or `{ "file": "PATH" }`. The secret has replaced it before a config is checked. */
const secretReference = z
  .strictObject({
    env: name.optional().describe('Name of an environment variable'),
    file: name.optional().describe("Path of a file, relative to the config's folder. Its last line break is dropped"),
  })
  .check((context) => {
    if (Object.keys(context.value).length === 1) return;
    context.issues.push({ code: 'custom', message: 'needs exactly one of env and file', input: context.value });
  })
  .meta({ description: REFERENCE_HELP, minProperties: 1, maxProperties: 1 });

/** A text that may be secret, so the config may refer to it. */
const secret = (text: z.ZodString) =>
  z
    .union([text, secretReference], { error: 'must be a string, or { "env": "NAME" } or { "file": "PATH" }' })
    // A reference that is still there could not be read, which is an issue of its own.
    .transform((value) => (typeof value === 'string' ? value : ''));

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
  const rule: SettingRule<number> | SettingRule<string> = SETTINGS[setting];
  const schema = 'choices' in rule ? z.enum(rule.choices) : z.int().min(rule.min).max(rule.max);
  return schema.describe(SETTING_HELP[setting]);
}

const lateAnswerMs = milliseconds(0).describe(
  'How long an upstream answer is still accepted as the outcome after the client got 504, in milliseconds',
);

/** Every idempotency setting, as the library's own table has it, with its default. */
const settings = Object.fromEntries(
  SETTING_NAMES.map((setting) => [setting, settingSchema(setting).default(SETTINGS[setting].default)]),
) as unknown as { readonly [Name in keyof ClaimSettings]: z.ZodDefault<z.ZodType<ClaimSettings[Name]>> };

/** The same settings without defaults: a route that does not set one uses that of `idempotency`. */
const routeSettings = Object.fromEntries(
  SETTING_NAMES.map((setting) => [setting, settingSchema(setting).optional()]),
) as unknown as { readonly [Name in keyof ClaimSettings]: z.ZodOptional<z.ZodType<ClaimSettings[Name]>> };

const idempotency = z.strictObject({
  ...settings,
  lateAnswerMs: lateAnswerMs.default(120_000),
  secret: secret(z.string().min(1))
    .optional()
    .describe('Key of the HMAC that makes fingerprints of requests; the same for all gateways of one store'),
});

/** What one application can take at most, so that it cannot starve the others. */
const perApplication = z.strictObject({
  maxRequests: z.int().min(1).default(1_000).describe('Most requests that run at a time'),
  maxBufferedBytes: z.int().min(0).default(268_435_456).describe('Its share of maxBufferedBytes'),
  maxUpstreamConnections: z
    .int()
    .min(1)
    .optional()
    .describe('Its share of maxUpstreamConnections. Default: half of them'),
  maxClaims: z
    .int()
    .min(1)
    .max(16_000_000)
    .optional()
    .describe(
      'Most idempotency keys. Default: in memory an equal share of 100,000, or 10,000 if that is more; in Redis 1,000,000 per process',
    ),
  maxLargeBytes: z
    .int()
    .min(0)
    .default(8_388_608)
    .describe('Answers of more than 8 KiB that wait for Redis or are on their way, in bytes. One always fits'),
  maxRefusedWorkMs: z
    .int()
    .min(1)
    .max(60_000)
    .default(2_000)
    .describe('Longest work per minute on bodies of requests that are then not forwarded, in milliseconds'),
});

const log = z.strictObject({
  level: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('The least important lines that are written. A request is info; with an error of the gateway, warn'),
  application: z.boolean().default(false).describe('Whether request lines name the application'),
  account: z.boolean().default(false).describe('Whether request lines name the account. Its id may be personal data'),
});

const keyAsWritten = z.strictObject({
  sha256: secret(z.string().regex(/^[0-9a-fA-F]{64}$/, 'must be the 64 hexadecimal digits of the SHA-256 of a token'))
    .optional()
    .describe('SHA-256 of the token, in hexadecimal'),
  token: secret(
    z.string().regex(/^[\x21-\x7e]{1,1024}$/, 'must be 1 to 1,024 printable ASCII characters without spaces'),
  )
    .optional()
    .describe('The token itself, best as a reference. Only its hash stays in memory'),
  application: name.describe('Application that the key belongs to. The key reaches only accounts of this application'),
  role: z.enum(['service', 'account', 'scoped']).default('account'),
  scope: name.nullable().default(null).describe('The one scope of a scoped key'),
  expiresAt: z.iso
    .datetime({ offset: true, error: 'must be a time in ISO 8601 with its offset, such as "2027-01-01T00:00:00Z"' })
    .optional()
    .describe('From this time on the key is refused. Without it the key never expires'),
});

/** A checked config has the hash in place of the token, so that the token does not stay in memory. */
const key = keyAsWritten.transform(({ sha256, token = '', ...rest }) => ({
  ...rest,
  sha256: sha256 === undefined ? digestOfToken(token) : sha256.toLowerCase(),
}));

const account = z.strictObject({
  id: name.describe('The id that requests give'),
  application: name,
  provider: name.optional().describe("Selects the provider's limits"),
  plan: name.optional().describe('What the customer pays for: selects one of limits.plans'),
  scope: name.nullable().default(null),
});

const routeIdempotency = z.strictObject({
  ...routeSettings,
  lateAnswerMs: lateAnswerMs.optional(),
  required: z.boolean().optional().describe('Whether a request without an idempotency key is refused with 400'),
});

const route = z.strictObject({
  route: z
    .string()
    .describe(
      'Method and path; {name} matches one segment, as in "GET /api/v1/chats/{chat_id}", and * at the end all that follows, as in "GET /files/*"',
    ),
  account: z
    .string()
    .regex(/^(path|query|header|body)\..+$/s, 'must be path.NAME, query.NAME, header.NAME or body.NAME')
    .optional()
    .describe(
      'Where requests give the account: path.NAME, query.NAME, header.NAME or body.NAME. Without it: not limited',
    ),
  idempotent: z.union([z.boolean(), routeIdempotency], { error: 'must be true, false or an object' }).optional(),
  upstream: name.optional().describe('Name of an upstream of upstreams, or default. It wins over that of the provider'),
});

const provider = z.strictObject({
  upstream: name.describe("Name of the upstream for requests of this provider's accounts"),
});

const cors = z.strictObject({
  origins: z
    .array(z.string())
    .describe('Origins of pages that may read answers, such as "https://app.example.com"; ["*"] for all'),
  headers: z
    .array(z.string())
    .default([])
    .describe('Names of request fields that pages may send, besides those that the gateway itself reads'),
  exposedHeaders: z
    .array(z.string())
    .default([])
    .describe('Names of answer fields that pages may read, besides those that the gateway itself writes'),
  credentials: z.boolean().default(false).describe('Whether pages may send cookies'),
  maxAgeS: z.int().min(0).max(86_400).default(600).describe('How long a browser stores a preflight, in seconds'),
});

/** The config file, section by section. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; the gateway does not read it'),
  listen: listener(8080).prefault({}).describe('The listener for requests'),
  admin: listener(8081).optional().describe("The operator's listener, for /metrics. Without it /metrics is not served"),
  store: secret(z.string())
    .prefault('memory')
    .describe('memory, redis://[user:password@]host:port/db, rediss://… or redis-cluster://…'),
  upstream: z
    .string()
    .default('http://127.0.0.1:9000')
    .describe('Where requests are forwarded. Its path is put in front of theirs'),
  upstreams: z
    .record(z.string(), z.string())
    .default({})
    .describe('Further upstreams: a URL by name, for routes and providers'),
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
    .describe('Processes that serve; auto: one per processor. More than 1 need Redis'),
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
    .enum(['local', 'admit', 'refuse'])
    .default('local')
    .describe("While the store is down: this process's own memory decides, every request is admitted, or refused"),
  idempotency: idempotency.prefault({}),
  perApplication: perApplication
    .prefault({})
    .describe('The most that one application can use of what all of them share'),
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
  limits: z
    .strictObject({
      recommended: z
        .boolean()
        .default(false)
        .describe("Starts each provider from headgate's recommended limits; `providers` overrides them by limit name"),
      unlimited: z
        .literal(true)
        .optional()
        .describe('Says that no request is limited. Without it, routes with an account need a window somewhere'),
      default: layer.default({}),
      plans: z.record(z.string(), layer).default({}),
      providers: z.record(z.string(), layer).default({}),
      accounts: z.record(z.string(), layer).default({}),
    })
    .prefault({})
    .describe('Per limit name the most specific layer wins: account, then provider, then plan, then default'),
});

/** A config as written in a file. */
export type ConfigInput = z.input<typeof configSchema>;

/** A config with every default filled in. */
export type Config = z.output<typeof configSchema>;

/** A connected account of the config. */
export type Account = Config['accounts'][number];

/** The JSON Schema of the config file: the content of `docs/config.schema.json`. */
export function jsonSchema(): string {
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-2020-12' });
  return `${JSON.stringify({ title: 'Config of the headgate process', ...schema }, undefined, 2)}\n`;
}

/** The message of the error that `read` throws, without the place in front of it. */
function errorOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return (error as Error).message.replace(/^(window|headers): /, '');
  }
}
