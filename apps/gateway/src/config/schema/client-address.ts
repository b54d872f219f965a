import { z } from 'zod';

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
