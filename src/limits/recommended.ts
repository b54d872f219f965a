/**
 * Limits to start from, for one connected account of each provider.
 * @module headgate/recommended
 */

import type { LimitSet } from './layers.ts';

/** The providers that have a recommendation. */
export type Provider = 'linkedin' | 'whatsapp' | 'google' | 'outlook' | 'imap' | 'telegram' | 'instagram' | 'mock';

/**
 * Headgate's own recommendation for one connected account of each provider. Most providers publish no numbers. These are cautious:
 * adjust them when you see how your accounts fare. They are not a promise of any provider, and raising them risks
 * `provider/too_many_requests`.
 */
export const recommendedLimits: Readonly<Record<Provider, LimitSet>> = {
  // These networks watch for automation: the numbers are far below what a diligent person does in a day.
  linkedin: { allMethods: ['20/1m', '800/1d'] },
  instagram: { allMethods: ['20/1m', '800/1d'] },
  whatsapp: { allMethods: ['30/1m', '1500/1d'] },
  telegram: { allMethods: ['30/1m', '2000/1d'] },
  // Mail and calendars have quotas of their own, hundreds per minute for reading. Sending is what gets an account blocked.
  google: { allMethods: ['120/1m', '20000/1d'], routes: { 'POST /api/v1/emails': ['20/1m', '400/1d'] } },
  outlook: { allMethods: ['120/1m', '20000/1d'], routes: { 'POST /api/v1/emails': ['20/1m', '400/1d'] } },
  // A mailbox of any host allows a few connections at a time.
  imap: { allMethods: ['60/1m', '10000/1d'], routes: { 'POST /api/v1/emails': ['10/1m', '200/1d'] } },
  // The demonstration: low enough to notice from a terminal.
  mock: { allMethods: ['60/1m', '5000/1d'], routes: { 'POST /api/v1/emails': ['10/1m', '200/1d'] } },
};
