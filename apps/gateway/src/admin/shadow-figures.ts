import type { RunningCandidate } from '../shadow/shadow-runner.ts';
import { sumOfCandidates } from './combined-figures.ts';
import type { AdminContext } from './context.ts';
import type { ShadowState } from './shadow-schemas.ts';

/**
 * The figures of a candidate, of every process of the gateway that runs it. A worker runs a new candidate a moment later
 * than its primary.
 * @throws NoAnswerError
 */
export async function figuresOfCandidate(
  context: Pick<AdminContext, 'figures'>,
  { candidate, checks, since, counters }: RunningCandidate,
): Promise<NonNullable<ShadowState['figures']>> {
  const { each, workers } = await context.figures('candidate');
  const sum = sumOfCandidates(candidate.id, each) ?? { sinceMs: since.getTime(), figures: checks.figures() };
  const { total, byRoute, newlyRejected, unlisted } = sum.figures;
  return {
    since: new Date(sum.sinceMs).toISOString(),
    counters,
    total,
    routes: Object.entries(byRoute).map(([route, counts]) => ({ route, ...counts })),
    accounts: [...newlyRejected],
    unlisted,
    ...(workers && { workers }),
  };
}
