import { z } from 'zod';
import { limit } from './limits.ts';

/** The `clientAddress` of the config. */
export const clientAddress = z.strictObject({
  trustedProxies: z
    .union([z.int().min(0), z.array(z.string())], {
      error: 'must be the number of proxies, or a list of their addresses',
    })
    .default(0)
    .describe(
      'The proxies in front of the gateway: their addresses, CIDR blocks, loopback, linklocal or uniquelocal; or their number. No other peer is believed',
    ),
  header: z
    .string()
    .default('x-forwarded-for')
    .describe('The field in which these proxies write the address of their peer'),
  ipv6Prefix: z.int().min(1).max(128).default(56).describe('Leading bits of an IPv6 address that make one client'),
});

const withNetwork = z.strictObject({
  windows: limit,
  perNetwork: limit
    .optional()
    .describe('The common allowance of all addresses of an IPv6 /48. Default: 16 times the windows. []: no such limit'),
});

/** The `perAddress` of the config. A checked config contains an object. */
export const perAddress = z
  .union([limit, withNetwork], { error: 'must be an array of windows, or { "windows": […], "perNetwork": […] }' })
  .transform((written) => ('windows' in written ? written : { windows: written, perNetwork: undefined }));
