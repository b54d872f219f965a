import { z } from 'zod';
import { secret, secretReference } from './secret.ts';
import { name } from './values.ts';

/** The schema of a candidate's counters has this after its name, and a name has at most 63 characters. */
export const SHADOW_SUFFIX = '_shadow';

const postgres = z.strictObject({
  url: secret(z.string()).describe('postgres://user[:password]@host[:port]/database[?sslmode=verify-full]'),
  password: secret(z.string()).optional().describe('Password of the user, if the URL contains none'),
  schema: z
    .string()
    .regex(/^(?!pg_)[A-Za-z_][\w-]{0,55}$/, {
      error: 'must be 1 to 56 of A-Z, a-z, 0-9, _ and -, and must not begin with a digit, - or pg_',
    })
    .default('headgate')
    .describe(`Schema of the tables. Shadow limits use a second schema, with ${SHADOW_SUFFIX} after this name`),
  maxConnections: z.int().min(1).max(1_000).default(10).describe('Most connections of each process that serves'),
  ca: name
    .optional()
    .describe("File with the certificate authorities of the server, in PEM, relative to the config's folder"),
  migrate: z
    .boolean()
    .default(false)
    .describe('Creates or updates the schema at start, as headgate migrate does. The user needs the right to do so'),
});

/** `store` of the config: a text that may be secret, or the settings of one kind of server. */
export const store = z
  .union([z.string(), secretReference, z.strictObject({ postgres })], {
    error: 'must be a string, { "env": "NAME" }, { "file": "PATH" } or { "postgres": { "url": … } }',
  })
  // A reference that is still there could not be read, which is a separate issue.
  .transform((value) => (typeof value === 'string' || 'postgres' in value ? value : ''));
