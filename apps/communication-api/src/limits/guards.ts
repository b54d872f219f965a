import { type Limiter, StoreFullError } from 'headgate';
import type { LimitSet } from 'headgate/limits';
import type { Logger } from 'pino';
import { ServiceError } from '../domain/service-error.ts';

/** What clients may try, and how often. */
const ATTEMPTS = {
  /** Forms that an address may send to the dashboard without being signed in. */
  form: ['20/1m', '200/1h'],
  /** Passwords that may be tried for one login, from all addresses together. */
  password: ['10/5m', '100/1d'],
  /** Codes that may be tried for one member: a code has six digits only. */
  code: ['5/5m', '30/1d'],
  /** Requests with a wrong API key, per address. Correct keys from the same address are not affected. */
  'wrong key': ['20/1m'],
  /** Forms that an address may send to the wizard. */
  'wizard address': ['30/1m'],
  /** Forms that one link may send to the wizard. */
  'wizard link': ['30/1m'],
} as const;

export type Attempt = keyof typeof ATTEMPTS;

const LIMITS: LimitSet = { routes: ATTEMPTS };

/** The limits of attempts. Each attempt is a route. */
export function limitsOfAttempt(route: string | undefined): LimitSet {
  // A request to a provider would not be limited at all.
  if (route === undefined || !Object.hasOwn(ATTEMPTS, route))
    throw new Error(`There are no limits of "${route}" without a provider.`);
  return LIMITS;
}

/**
 * Counts what clients try, for all processes together, and stops those who try too often. While the counters are away,
 * each process counts for itself, so nothing is ever uncounted.
 */
export class Guards {
  constructor(
    private readonly limiter: Limiter,
    private readonly log: Pick<Logger, 'warn'>,
  ) {}

  /**
   * Counts one attempt, to be called before it is made.
   * @throws ServiceError 429 after too many of them, 503 if there is no room for another client
   */
  async check(attempt: Attempt, client: string, text = 'Too many attempts. Wait, then try again.'): Promise<void> {
    const { accepted, shown } = await this.limiter.consume(subjectOf(attempt, client)).catch((error: unknown) => {
      if (!(error instanceof StoreFullError)) throw error;
      throw new ServiceError(503, 'errors/service_unavailable', 'Too many clients at a time.', { retryAfter: 60 });
    });
    if (!accepted)
      throw new ServiceError(429, 'api/too_many_requests', text, {
        retryAfter: Math.max(1, Math.ceil((shown?.resetMs ?? 60_000) / 1_000)),
      });
  }

  /** An attempt was right: earlier ones no longer count. */
  async forgive(attempt: Attempt, client: string): Promise<void> {
    try {
      await this.limiter.reset(subjectOf(attempt, client));
    } catch (error) {
      // The person entered the right one, so an outage of the counters must not prevent the login.
      this.log.warn({ err: error }, 'the attempts of a login were not forgotten');
    }
  }

  close(): Promise<void> {
    return this.limiter.close();
  }
}

/** No linked account has such a name. */
const subjectOf = (attempt: Attempt, client: string) => ({ account: `${attempt} ${client}`, route: attempt });
