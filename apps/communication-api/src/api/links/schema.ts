import { z } from 'zod';
import { COUNTRIES } from '../../domain/countries.ts';
import { AUTO_PROXY_PROVIDERS, PROVIDER_NAMES, type ProviderName, WILDCARDS } from '../../domain/providers.ts';
import { isProxyHost, PROXY_PROTOCOLS } from '../../domain/proxy.ts';

const customProxy = z
  .strictObject({
    protocol: z.enum(PROXY_PROTOCOLS),
    host: z.string().max(253).refine(isProxyHost, 'must be a host name or an address, without a protocol or a port'),
    port: z.int().min(1).max(65_535),
    username: z.string().max(255).optional(),
    password: z.string().max(255).optional(),
  })
  .meta({ id: 'CustomProxy', description: 'The proxy for accounts of this provider.' });

const autoProxy = z
  .strictObject({
    country: z
      .string()
      .refine((code) => COUNTRIES.includes(code), 'must be an ISO 3166-1 alpha-2 code in upper case, such as "FR"')
      .optional()
      .describe('ISO 3166-1 alpha-2.'),
    ip: z.ipv4().optional().describe('IPv4 address near which the proxy is chosen.'),
  })
  .refine(({ country, ip }) => (country === undefined) !== (ip === undefined), 'give either country or ip')
  .meta({
    id: 'AutoProxy',
    description: 'The place of a proxy. It is only stored: this service runs no proxies.',
  });

const plain = z.strictObject({ custom_proxy: customProxy.optional() });
const automatic = z
  .strictObject({ custom_proxy: customProxy.optional(), auto_proxy_config: autoProxy.optional() })
  .refine(
    (config) => config.custom_proxy === undefined || config.auto_proxy_config === undefined,
    'give either custom_proxy or auto_proxy_config',
  );
const imap = z.strictObject({
  custom_proxy: customProxy.optional(),
  initial_sync_enable: z.boolean().optional().describe('Default: false.'),
});

const configOf = (name: ProviderName) => {
  if (name === 'imap') return imap;
  return (AUTO_PROXY_PROVIDERS as readonly ProviderName[]).includes(name) ? automatic : plain;
};

const linkConfig = z
  .strictObject({
    ...(Object.fromEntries(PROVIDER_NAMES.map((name) => [name, configOf(name).optional()])) as {
      [Name in ProviderName]: z.ZodOptional<typeof imap | typeof plain | typeof automatic>;
    }),
    global: z
      .strictObject({
        allow_user_proxy_override: z.boolean().optional().describe('Shows a proxy form. Default: false.'),
        allow_user_country_override: z
          .boolean()
          .optional()
          .describe(
            'Lets users of linkedin, whatsapp and instagram choose a country for `auto_proxy_config`. Default: false.',
          ),
        wait_initial_sync: z
          .boolean()
          .optional()
          .describe('The user returns when the initial sync is completed. Default: false.'),
        login_hint: z.string().max(320).optional().describe('Who the user probably is: fills in the address.'),
      })
      .optional(),
  })
  .meta({ id: 'AuthLinkConfig' });

/** The body of a request for a link. */
export const linkRequest = z
  .strictObject({
    providers: z
      .union([z.string().max(100), z.array(z.string().max(100)).max(PROVIDER_NAMES.length)])
      .optional()
      .describe(
        `To link a new account: one selector (${[...Object.keys(WILDCARDS), ...PROVIDER_NAMES].join(', ')}), or an array of provider names. Not together with account_id.`,
      ),
    account_id: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe('To reconnect this account. Not together with providers.'),
    expires_on: z.iso
      .datetime({
        offset: true,
        error: ({ input }) =>
          input === undefined
            ? undefined
            : 'must be an ISO 8601 timestamp with a time zone, such as 2030-01-31T12:00:00.000Z',
      })
      .describe('When the link ends: in the future, and at most 7 days away.'),
    redirect_uri: z.string().max(2_000).describe('The address to which the user returns.'),
    state: z.string().max(2_000).optional().describe('Returned unchanged in the query of the callback.'),
    domain: z.string().min(1).max(253).optional().describe('A verified domain of your application for the wizard.'),
    scope_id: z.string().min(1).max(100).optional().describe('The scope of the new account. Service keys only.'),
    config: linkConfig.optional(),
  })
  .meta({
    id: 'AuthLinkRequest',
    examples: [
      {
        providers: ['google', 'imap'],
        expires_on: '2026-11-21T12:10:00.000Z',
        redirect_uri: 'https://app.example/callback',
        state: 'u42',
      },
    ],
  });

/** A created link. */
export const authLink = z
  .object({
    object: z.literal('AuthLink'),
    id: z.string(),
    link: z.url().describe('Send the user there. It is shown once.'),
    expires_on: z.iso.datetime(),
  })
  .meta({
    id: 'AuthLink',
    examples: [
      {
        object: 'AuthLink',
        id: 'lnk_01kaj6q2m0e7r8s9t0v1w2x3y4',
        link: 'https://connect.app.example/auth/l/4c1f',
        expires_on: '2026-11-21T12:10:00.000Z',
      },
    ],
  });
