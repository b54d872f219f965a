import { z } from 'zod';
import { InputError } from '../../api/input.ts';
import { type Operation, operation } from '../../api/operation.ts';
import { reason } from '../../api/schemas.ts';
import { shadowIssues } from '../../config/limit-checks.ts';
import { unlimitedCandidateIssues } from '../../config/limits.ts';
import { shadow as shadowSchema } from '../../config/schema/shadow.ts';
import type { ShadowConfig } from '../../config/schema.ts';
import { unusedIn } from '../../config/unused-limits.ts';
import { refuse } from '../../exchange/refusal.ts';
import { layersOf } from '../../shadow/candidate.ts';
import { sumOfCounts } from '../combined-figures.ts';
import { type AdminContext, audit } from '../context.ts';
import { listFleet } from '../fleet.ts';
import { promotionOf } from '../promotion.ts';
import { figuresOfCandidate } from '../shadow-figures.ts';
import { type ShadowState, shadowState } from '../shadow-schemas.ts';

const tag = 'Limits';
const PLACE = /^shadow\./;

/** A candidate for other limits, which decides beside the limits in force and changes no answer. */
export function shadowOperations(context: AdminContext): Operation[] {
  const { config, shadow, traffic } = context;
  /** @throws InputError */
  const check = (settings: ShadowConfig): void => {
    const issues = [
      ...shadowIssues(settings, config()),
      ...unlimitedCandidateIssues(settings),
      ...unusedIn('shadow.limits', settings.limits, config()),
    ];
    const relative = issues.map(({ path, reason }) => ({ path: path.replace(PLACE, ''), reason }));
    if (relative.length > 0) throw new InputError(relative);
  };
  const state = async (): Promise<ShadowState> => {
    const { running, isDurable: durable } = shadow;
    if (running === undefined) return { candidate: null, durable, figures: null, promotion: null };
    const { source, settings, by = null, reason = null, atMs } = running.candidate;
    const at = atMs === undefined ? null : new Date(atMs).toISOString();
    return {
      candidate: { source, ...settings, by, reason, at },
      durable,
      figures: await figuresOfCandidate(context, running),
      promotion: shownPromotion(await promotionOf(context, running.limits)),
    };
  };

  return [
    operation({
      id: 'getShadow',
      method: 'GET',
      path: '/v1/shadow',
      role: 'viewer',
      tag,
      summary: 'The candidate for other limits, its figures, and the changes that would promote it',
      query: z.strictObject({
        fleet: z.boolean().default(false).describe('Adds the sum of the processes that run the same candidate'),
      }),
      answer: shadowState,
      errors: [503],
      run: async ({ query: { fleet } }) => ({
        ...(await state()),
        ...(fleet ? { fleet: await sumOfFleet(context) } : {}),
      }),
    }),
    operation({
      id: 'putShadow',
      method: 'PUT',
      path: '/v1/shadow',
      role: 'operator',
      tag,
      summary: 'Runs a candidate in every gateway with the same store',
      description:
        'It replaces the candidate that an operator put before, and takes precedence over the candidate of the config.',
      query: z.strictObject({
        dryRun: z.boolean().default(false).describe('Only checks it, and says what would promote it'),
      }),
      body: shadowSchema.extend({ reason }),
      answer: shadowState,
      errors: [503],
      async run({ query: { dryRun }, body: { reason, ...settings } }, caller) {
        check(settings);
        if (dryRun) {
          const promotion = shownPromotion(await promotionOf(context, layersOf(config(), settings)));
          const candidate = {
            source: 'operator' as const,
            ...settings,
            by: caller.name,
            reason: reason || null,
            at: null,
          };
          return { candidate, durable: shadow.isDurable, figures: null, promotion };
        }
        await shadow.put(settings, caller.name, reason || undefined);
        audit(context, caller, 'shadow started', { reason });
        traffic.onState({ state: 'shadow_started', by: caller.name });
        return state();
      },
    }),
    operation({
      id: 'endShadow',
      method: 'DELETE',
      path: '/v1/shadow',
      role: 'operator',
      tag,
      summary: 'Ends the candidate that an operator has put, so that the config applies again',
      description: 'Also if there is none. 409 if only the config has a candidate.',
      query: z.strictObject({ reason }),
      answer: shadowState,
      errors: [409, 503],
      async run({ query }, caller) {
        if (!shadow.isPut && shadow.running !== undefined)
          return refuse(
            409,
            'errors/conflict',
            'The candidate is that of the config: remove shadow from the config, and reload.',
          );
        await shadow.end();
        audit(context, caller, 'shadow ended', { reason: query.reason });
        traffic.onState({ state: 'shadow_ended', by: caller.name });
        return state();
      },
    }),
  ];
}

function shownPromotion({ changes, left, obstacles }: Awaited<ReturnType<typeof promotionOf>>) {
  return { changes: [...changes], left, obstacles: [...obstacles] };
}

/** @throws the store's errors */
async function sumOfFleet(context: AdminContext): Promise<ShadowState['fleet']> {
  const { said } = context.shadow;
  if (said === undefined) return null;
  // A process that just started is not in the list yet, so this process is counted by itself.
  const others = (await listFleet(context)).filter(({ self, details }) => !self && details !== undefined);
  const same = others.flatMap(({ details }) => (details?.shadow?.id === said.id ? [details.shadow.total] : []));
  return {
    processes: { counted: same.length + 1, of: others.length + 1 },
    total: same.reduce(sumOfCounts, said.total),
  };
}
