import { z } from 'zod';
import { isLoopback } from './domain/application-url.ts';
import { PROCESS_ROLES } from './domain/process-role.ts';
import { readSecretFiles } from './secret-files.ts';
import { EGRESS_POLICIES, type PolicyName } from './security/egress-policy.ts';
import type { MasterKey } from './security/envelope.ts';

const integer = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
};

const origin = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.pathname === '/' &&
    url.search === '' &&
    url.hash === ''
  )
    return url.origin;
  context.addIssue({ code: 'custom', message: 'must be an origin such as https://api.example.com, without a path' });
  return z.NEVER;
});

/** The address of a provider, or of a double of it for tests. */
const providerUrl = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  if (isSafe && url?.search === '' && url.hash === '' && url.username === '') return text.replace(/\/$/, '');
  context.addIssue({ code: 'custom', message: 'must be an https address, or http to a loopback address' });
  return z.NEVER;
});

const databaseUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//, 'must begin with postgres:// or postgresql://')
  .optional();

const redisUrl = z
  .string()
  .regex(/^rediss?:\/\//, 'must begin with redis:// or rediss://')
  .optional();

const secretKeys = z.string().transform((text, context): MasterKey[] => {
  const keys = text.split(',').map((entry) => {
    const [id = '', encoded = ''] = entry.trim().split(':');
    return { id, key: Buffer.from(encoded, 'base64') };
  });
  const fault = (message: string): void => context.addIssue({ code: 'custom', message });
  if (!keys.every(({ id, key }) => /^[A-Za-z0-9]{1,16}$/.test(id) && key.length === 32))
    fault('must be a list such as k2:<base64 of 32 bytes>,k1:<base64 of 32 bytes>');
  // A secret names the key that it is under by this id.
  else if (new Set(keys.map(({ id }) => id)).size < keys.length) fault('must give each key a different id');
  return keys;
});

const list = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ''),
  );

/** Each variable of the environment: the values that it accepts, its default and its meaning. */
const VARIABLES = z.object({
  PORT: integer(0, 65_535).default(8080).describe('Port of the API, the wizard and the reference page.'),
  HOST: z.string().min(1).default('127.0.0.1').describe('Address to listen on.'),
  ROLE: z
    .enum(PROCESS_ROLES)
    .default('all')
    .describe(
      'What this process does: `api` answers requests, `worker` does the work in the background, and `all` does both.',
    ),
  ADMIN_PORT: integer(0, 65_535)
    .optional()
    .describe('Port of the health checks and of the metrics. Without it, neither is served.'),
  ADMIN_HOST: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address that ADMIN_PORT listens on. Only operators may be able to reach it.'),
  BASE_URL: origin.optional().describe('Public origin of the API. Default: http://HOST:PORT.'),
  AUTH_URL: origin.optional().describe('Public origin of the wizard. Default: BASE_URL.'),
  TRACKING_URL: origin.optional().describe('Public origin of tracked links and open pixels. Default: BASE_URL.'),
  TRUSTED_PROXIES: list.describe(
    'Addresses or CIDR blocks of the proxies in front, separated by commas. Default: none.',
  ),
  DATABASE_URL: databaseUrl.describe(
    'PostgreSQL server, version 15 or newer. Default: PostgreSQL embedded in this process.',
  ),
  DATA_DIR: z
    .string()
    .min(1)
    .default('data')
    .describe('Folder of the embedded database, its backups and its master key.'),
  AUTO_MIGRATE: z
    .enum(['true', 'false'])
    .default('true')
    .transform((text) => text === 'true')
    .describe('Whether the start brings the schema of DATABASE_URL up to date.'),
  REDIS_URL: redisUrl.describe('Redis server for the counters of limits and attempts. Default: the database.'),
  LIMIT_LEASES: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true')
    .describe(
      'Whether a process charges units of busy accounts ahead, and decides from them without a call. Never over.',
    ),
  SECRET_KEYS: secretKeys
    .optional()
    .describe('Master keys, the current one first. Required with DATABASE_URL. Default: DATA_DIR/master.key.'),
  EGRESS_POLICY: z
    .enum(EGRESS_POLICIES)
    .optional()
    .describe(
      'Where connections to the outside may lead to: public, link-local or off. Default: public with DATABASE_URL, else link-local.',
    ),
  EGRESS_PORTS: z
    .string()
    .default('')
    .transform((text, context): readonly number[] => {
      const ports = text === '' ? [] : text.split(',').map(Number);
      if (ports.every((port) => Number.isInteger(port) && port >= 1 && port <= 65_535)) return ports;
      context.addIssue({ code: 'custom', message: 'must be a list of ports such as 1143,1025' });
      return z.NEVER;
    })
    .describe(
      'Ports that connections to the outside may use in addition to the ports of the policy, separated by commas.',
    ),
  PROVIDERS: list.describe(
    'Paths of plug-ins with more providers, separated by commas, such as ./my-provider.mjs. Default: none.',
  ),
  MAX_BODY_BYTES: integer(1_024, 1_073_741_824).default(26_214_400).describe('Largest request body, in bytes.'),
  SPOOL_MAX_BYTES: integer(1_024, 2 ** 53 - 1)
    .default(2_147_483_648)
    .describe('Disk space for attachments of requests that are being served, in bytes.'),
  APPEND_MAX_BYTES: integer(0, 1_073_741_824)
    .default(52_428_800)
    .describe(
      'Largest message that is filed in the folder for sent emails of an imap account, in bytes. 0: none is filed.',
    ),
  BODY_TIMEOUT_MS: integer(1, 3_600_000).default(30_000).describe('How long a client may pause while it sends a body.'),
  SEND_TIMEOUT_MS: integer(1, 600_000).default(60_000).describe('How long a provider may take to send an email.'),
  SHUTDOWN_DELAY_MS: integer(0, 600_000)
    .default(0)
    .describe('How long requests are still accepted after SIGTERM, while the health checks say 503.'),
  DRAIN_MS: integer(0, 600_000).default(30_000).describe('How long running requests may take after SIGTERM.'),
  LOG_LEVEL: z
    .enum(['silent', 'fatal', 'error', 'warn', 'info', 'debug'])
    .default('info')
    .describe('Lowest level that is logged.'),
  GOOGLE_CLIENT_ID: z
    .string()
    .optional()
    .describe('OAuth client of the operator at Google. Default: accounts of Google cannot be linked.'),
  GOOGLE_CLIENT_SECRET: z.string().optional().describe('Secret of that client. Required with GOOGLE_CLIENT_ID.'),
  GOOGLE_SCOPES: z
    .enum(['drafts', 'send'])
    .default('drafts')
    .describe(
      'Permissions that Google users are asked for. `send` allows less: the service cannot look up the outcome of an email.',
    ),
  GOOGLE_ISSUER: providerUrl.default('https://accounts.google.com').describe('Authorization server of Google.'),
  GOOGLE_API_URL: providerUrl.default('https://gmail.googleapis.com').describe('Origin of the Gmail API.'),
  MICROSOFT_CLIENT_ID: z
    .string()
    .optional()
    .describe('OAuth client of the operator at Microsoft. Default: accounts of Outlook cannot be linked.'),
  MICROSOFT_CLIENT_SECRET: z.string().optional().describe('Secret of that client. Required with MICROSOFT_CLIENT_ID.'),
  MICROSOFT_TENANT: z
    .string()
    .regex(/^[A-Za-z0-9.-]+$/, 'must be common, organizations, consumers, or the id or domain of a tenant')
    .default('common')
    .describe('Who can link a mailbox: `common`, `organizations`, `consumers`, or one tenant.'),
  MICROSOFT_ISSUER: providerUrl
    .optional()
    .describe('Authorization server of Microsoft. Default: https://login.microsoftonline.com/MICROSOFT_TENANT/v2.0.'),
  MICROSOFT_API_URL: providerUrl
    .default('https://graph.microsoft.com/v1.0')
    .describe('Address of Microsoft Graph. National clouds use other addresses.'),
  OUTLOOK_SCOPES: z
    .enum(['drafts', 'send'])
    .default('drafts')
    .describe(
      'Permissions that Outlook users are asked for. `send` allows less: the service cannot look up the outcome of an email.',
    ),
});

type Variables = z.output<typeof VARIABLES>;

/** The checked settings of a process. */
export interface Config extends Omit<Variables, 'BASE_URL' | 'AUTH_URL' | 'TRACKING_URL' | 'EGRESS_POLICY'> {
  readonly BASE_URL: string;
  readonly AUTH_URL: string;
  readonly TRACKING_URL: string;
  readonly EGRESS_POLICY: PolicyName;
}

/** The environment is faulty; `faults` contains one line per fault. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'));
  }
}

/**
 * Reads the settings from environment variables, and secrets also from files. An empty variable counts as absent.
 * @throws ConfigError that names every fault, never a value
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const variables = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const files = readSecretFiles(variables, Object.keys(VARIABLES.shape), SECRETS);
  const given = { ...variables, ...files.values };
  const { success, data, error } = VARIABLES.safeParse(given);
  const faults = [
    ...files.faults,
    ...(error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`),
    // A value that cannot be read is not missing.
    ...(files.faults.length > 0 ? [] : missingPartners(given)),
  ];
  if (!success || faults.length > 0) throw new ConfigError(faults);
  const host = data.HOST.includes(':') ? `[${data.HOST}]` : data.HOST;
  const BASE_URL = data.BASE_URL ?? `http://${host}:${data.PORT}`;
  return {
    ...data,
    BASE_URL,
    AUTH_URL: data.AUTH_URL ?? BASE_URL,
    TRACKING_URL: data.TRACKING_URL ?? BASE_URL,
    // An embedded database is for one small host, which may send by a mail server in the same house.
    EGRESS_POLICY: data.EGRESS_POLICY ?? (data.DATABASE_URL === undefined ? 'link-local' : 'public'),
  };
}

/** Variables that are needed because others are given. */
const missingPartners = (given: Readonly<Record<string, unknown>>): readonly string[] => [
  ...(given.DATABASE_URL !== undefined && given.SECRET_KEYS === undefined
    ? ['SECRET_KEYS: required with DATABASE_URL, since all processes must share the master key']
    : []),
  ...(given.DATABASE_URL === undefined && given.ROLE !== undefined && given.ROLE !== 'all'
    ? ['ROLE: only `all` works without DATABASE_URL, since no other process can use the embedded database']
    : []),
  ...['GOOGLE', 'MICROSOFT']
    .filter((name) => (given[`${name}_CLIENT_ID`] === undefined) !== (given[`${name}_CLIENT_SECRET`] === undefined))
    .map((name) => `${name}_CLIENT_ID, ${name}_CLIENT_SECRET: give both, or neither`),
];

/** One variable, for people. */
export interface VariableInfo {
  readonly name: string;
  /** As an operator would write it; undefined if the description names the default. */
  readonly defaultValue: string | undefined;
  readonly description: string;
  /** Whether its value can contain a password or a key. Then it may be in a file, which NAME_FILE names. */
  readonly isSecret: boolean;
}

const SECRETS: readonly string[] = [
  ...['DATABASE_URL', 'REDIS_URL', 'SECRET_KEYS'],
  ...['GOOGLE_CLIENT_SECRET', 'MICROSOFT_CLIENT_SECRET'],
];

/** Every variable, for the command `config` and the docs. */
export const describeVariables = (): readonly VariableInfo[] =>
  Object.entries(VARIABLES.shape).map(([name, schema]) => {
    const { success, data } = schema.safeParse(undefined);
    const text = success && data !== undefined ? String(data) : '';
    return {
      name,
      defaultValue: text === '' ? undefined : text,
      description: schema.description ?? '',
      isSecret: SECRETS.includes(name),
    };
  });
