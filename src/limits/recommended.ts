/**
 * Limits to start from, for one connected account of each provider.
 * @module headgate/recommended
 */

import type { LimitSet } from './layer-input.ts';

/** Providers with a recommendation. */
export type Provider = 'linkedin' | 'whatsapp' | 'google' | 'outlook' | 'imap' | 'telegram' | 'instagram' | 'mock';

/**
 * Limits to start with, for one connected account of each provider. Most providers publish no numbers. These are
 * headgate's own cautious values, which no provider guarantees: adjust them when you see how your accounts behave.
 * Higher values risk `provider/too_many_requests`.
 */
export const recommendedLimits: Readonly<Record<Provider, LimitSet>> = {
  // These networks detect automation: the limits are far below what a busy person does in a day.
  linkedin: { allMethods: ['20/1m', '800/1d'] },
  instagram: { allMethods: ['20/1m', '800/1d'] },
  whatsapp: { allMethods: ['30/1m', '1500/1d'] },
  telegram: { allMethods: ['30/1m', '2000/1d'] },
  // Their own quotas allow hundreds of reads per minute. Accounts are blocked for sending.
  google: { allMethods: ['120/1m', '20000/1d'], routes: { 'POST /api/v1/emails': ['20/1m', '400/1d'] } },
  outlook: { allMethods: ['120/1m', '20000/1d'], routes: { 'POST /api/v1/emails': ['20/1m', '400/1d'] } },
  // Any mail host. Most allow few connections at a time.
  imap: { allMethods: ['60/1m', '10000/1d'], routes: { 'POST /api/v1/emails': ['10/1m', '200/1d'] } },
  // No real provider. Low enough to see rejections.
  mock: { allMethods: ['60/1m', '5000/1d'], routes: { 'POST /api/v1/emails': ['10/1m', '200/1d'] } },
};
