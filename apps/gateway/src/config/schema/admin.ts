import { z } from 'zod';
import { listener } from './listener.ts';
import { tokenShape, withDigest } from './token.ts';

/** Roles of a token of the Admin API. Each role includes the rights of the earlier roles. */
export const ROLES = ['viewer', 'operator', 'admin'] as const;

export type AdminRole = (typeof ROLES)[number];

/** The token protects every account, so it must not be one that can be guessed. */
const SHORTEST_TOKEN = 16;

const adminToken = z
  .strictObject({
    ...tokenShape(SHORTEST_TOKEN),
    name: z
      .string()
      .regex(/^[\x20-\x7e]{1,100}$/, 'must be 1 to 100 printable ASCII characters')
      .describe('Who has the token. The log and the history of changes show this name'),
    role: z
      .enum(ROLES)
      .default('viewer')
      .describe('viewer reads; operator also changes limits, counters and claims; admin may do everything'),
  })
  .transform(withDigest);

/** The `admin` of the config. */
export const admin = listener(8081).extend({
  tokens: z.array(adminToken).default([]).describe('Who may use the Admin API. Without tokens there is no Admin API'),
  hosts: z
    .array(z.string())
    .default([])
    .describe('Names by which clients reach the listener, such as "ops.example.com", besides its own address'),
  console: z
    .boolean()
    .default(true)
    .describe('Whether the listener serves the console, a page on which operators use their tokens'),
  insecure: z
    .boolean()
    .default(false)
    .describe('Whether tokens may be sent without TLS to an address that other machines can reach'),
});
