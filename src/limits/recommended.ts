import type { LimitSet } from './layers.ts';

/** The providers of the specification (seed, section 4.2). */
export type Provider = 'linkedin' | 'whatsapp' | 'google' | 'outlook' | 'imap' | 'telegram' | 'instagram' | 'mock';

/**
 * Headgate's own recommendation to start from, for one connected account of each provider. The specification gives no numbers, and
 * neither do most providers: these are cautious, meant to be adjusted once you see how your accounts fare, and no promise of a provider's.
 * Raising them risks `provider/too_many_requests`.
 */
export const recommendedLimits: Readonly<Record<Provider, LimitSet>> = {
  // Networks that watch for automation: far below what a diligent person does in a day.
  linkedin: { allMethods: ['20/1m', '800/1d'] },
  instagram: { allMethods: ['20/1m', '800/1d'] },
  whatsapp: { allMethods: ['30/1m', '1500/1d'] },
  telegram: { allMethods: ['30/1m', '2000/1d'] },
  // Mail and calendars with quotas of their own, in the hundreds a minute for reading; sending is what gets an account blocked.
  google: { allMethods: ['120/1m', '20000/1d'], routes: { 'POST /api/v1/emails': ['20/1m', '400/1d'] } },
  outlook: { allMethods: ['120/1m', '20000/1d'], routes: { 'POST /api/v1/emails': ['20/1m', '400/1d'] } },
  // A mailbox of any host, with a few connections at a time.
  imap: { allMethods: ['60/1m', '10000/1d'], routes: { 'POST /api/v1/emails': ['10/1m', '200/1d'] } },
  // Nobody is behind it; low enough to be felt.
  mock: { allMethods: ['60/1m', '5000/1d'], routes: { 'POST /api/v1/emails': ['10/1m', '200/1d'] } },
};
