import { createLimiter } from 'headgate';
import { rateLimitFields } from 'headgate/http';
import { createMemoryStore } from 'headgate/memory';
import type { State } from '../../playground/presets.ts';

const ROUTE = 'POST /api/v1/emails';

/** What a limiter in Node says about a history, in the words of the table: not by the code of the playground. */
export function expectedRows({ current, adjustment, moments }: State): string[] {
  let now = 0;
  const split = (text: string): string[] => text.split(', ').filter(Boolean);
  const limiter = createLimiter({
    store: createMemoryStore({ clock: { now: () => now } }),
    limits: { allMethods: split(current.allMethods), routes: { [ROUTE]: split(current.route) } },
    validate: false,
  });
  let pending = adjustment;
  return moments.map((atMs) => {
    now = atMs;
    if (pending !== undefined && pending.atMs <= now) {
      limiter.adjust({}, split(pending.limits.allMethods));
      limiter.adjust({ route: ROUTE }, split(pending.limits.route));
      pending = undefined;
    }
    const decision = limiter.consumeSync({ account: 'acc_1', route: ROUTE });
    const fields = rateLimitFields(decision);
    const { limit, max, durationMs } = decision.shown ?? { limit: 'route', max: 0, durationMs: 0 };
    const name = limit === 'route' ? 'Route' : 'All methods';
    const window = `${max}/${durationMs % 1_000 === 0 ? (durationMs === 60_000 ? '1m' : `${durationMs / 1_000}s`) : `${durationMs}ms`}`;
    return [
      decision.accepted ? 'accepted' : `rejected by ${name} ${window}`,
      fields['x-ratelimit-remaining'],
      fields['x-ratelimit-reset'],
      fields['retry-after'] ?? '',
    ].join('|');
  });
}
