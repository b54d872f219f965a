import { z } from 'zod';
import { type Operation, operation } from '../../api/operation.ts';
import { countedWorkers, moment, named, windowState } from '../../api/schemas.ts';
import { stateOf } from '../../api/window-state.ts';
import { inSlices } from '../../base/slices.ts';
import { refuse } from '../../exchange/refusal.ts';
import { OUTCOMES } from '../../traffic/event-feed.ts';
import { FleetSum } from '../../traffic/fleet-top.ts';
import { COUNTED, SERIES_SECONDS } from '../../traffic/series.ts';
import { RANKINGS, type Ranking } from '../../traffic/top-accounts.ts';
import { type CountedWorkers, sumOfSeconds, sumOfTops } from '../combined-figures.ts';
import type { AdminContext } from '../context.ts';
import { listFleet } from '../fleet.ts';

const tag = 'Traffic';
const MAX_TOP = 100;

const top = z.object({
  by: z.enum(RANKINGS),
  exact: z.boolean().describe('Whether every count is exact. With more than 1,024 accounts the counts have an error'),
  since: moment.describe('Since when it was counted: five to ten minutes, or less after the start'),
  processes: z
    .object({ counted: z.int(), of: z.int() })
    .optional()
    .describe('With `fleet`: how many of the living processes have said who is at their top'),
  accounts: z.array(
    z.object({
      account: z.string(),
      count: z.int(),
      error: z.int().describe('How much of `count` may be of other accounts'),
      lastMinute: z
        .int()
        .describe('How many of `count` came in the last minute. With more than 1,024 accounts, so many at least'),
      missing: z
        .int()
        .optional()
        .describe('With `fleet`: how many more it may have, at processes whose list does not have it'),
      route: z.string().describe('That of the last request'),
      tightest: windowState.nullable().describe('The fullest window at the last request'),
    }),
  ),
  workers: countedWorkers,
});

export type Top = z.output<typeof top>;

const ms = z.number().nullable().describe('Milliseconds; at most twice the real figure. null: no call of the store');
const second = z.object({
  at: moment,
  ...(Object.fromEntries(COUNTED.map((name) => [name, z.int()])) as Record<(typeof COUNTED)[number], z.ZodInt>),
  storeP50Ms: ms,
  storeP99Ms: ms,
});

export type Second = z.output<typeof second>;

const decision = z.object({
  req_id: z.string(),
  at: moment,
  outcome: z.enum(OUTCOMES),
  account: z.string(),
  route: z.string(),
  lane: z.string().nullable(),
  group: z.string().nullable().describe('The group whose limit rejected the request'),
  cost: z.int().describe('In requests'),
  costs: z
    .record(z.string(), z.int())
    .optional()
    .describe('Per unit, such as `{ "requests": 1, "tokens": 800 }`; absent if it costs only requests'),
  blocked: z
    .object({ forMs: z.int().describe('How much longer it would have lasted'), reason: z.string().nullable() })
    .nullable()
    .describe('The block that rejected before any window was checked'),
  inFlight: z
    .object({ running: z.int(), max: z.int() })
    .nullable()
    .describe('Rejected, because so many requests ran at the same time'),
  impossible: z.boolean().describe('Rejected, and waiting does not help: the cost is more than the max of the window'),
  trace: z.array(windowState).describe('Every window that was checked, in order, after the charge'),
});
export type Decision = z.output<typeof decision>;

/** Recent requests: top accounts, figures per second, and decisions. */
export function trafficOperations(context: AdminContext): Operation[] {
  return [
    operation({
      id: 'listTopAccounts',
      method: 'GET',
      path: '/v1/top',
      role: 'viewer',
      tag,
      summary: 'The accounts with the most requests that were rejected, nearly rejected, or accepted',
      description:
        'Of this gateway; with `fleet` of every process with the same store, each of which says its top 20 about every two seconds. near: accepted, although a window is at least 80 % full. First those with the most requests of the last minute, then those with the most at all.',
      query: z.strictObject({
        by: z.enum(RANKINGS).default('rejected'),
        limit: z.int().min(1).max(MAX_TOP).default(20),
        fleet: z.boolean().default(false).describe('Of every process with the same store'),
      }),
      answer: top,
      errors: [503],
      async run({ query: { by, limit, fleet } }) {
        const { accounts, exact, sinceMs, processes, workers } = fleet
          ? { ...(await topOfFleet(context, by, limit)), workers: undefined }
          : { ...(await topOfGateway(context, by, limit)), processes: undefined };
        return {
          by,
          exact,
          since: new Date(sinceMs).toISOString(),
          ...(processes && { processes }),
          accounts: accounts.map(({ tightest, ...each }) => ({
            ...each,
            tightest: tightest === undefined ? null : stateOf(tightest),
          })),
          ...(workers && { workers }),
        };
      },
    }),
    operation({
      id: 'listSeconds',
      method: 'GET',
      path: '/v1/series',
      role: 'viewer',
      tag,
      summary: 'Figures of each of the last seconds, the oldest first',
      query: z.strictObject({
        seconds: z
          .int()
          .min(1)
          .max(SERIES_SECONDS - 1)
          .default(60),
      }),
      answer: z.object({ seconds: z.array(second), workers: countedWorkers }),
      errors: [503],
      async run({ query }) {
        const { each, workers } = await context.figures('seconds', query.seconds, context.traffic.now());
        const seconds = sumOfSeconds(each).map(({ atMs, p50 = null, p99 = null, ...counts }) => ({
          at: new Date(atMs).toISOString(),
          ...counts,
          storeP50Ms: p50,
          storeP99Ms: p99,
        }));
        return { seconds, ...(workers && { workers }) };
      },
    }),
    operation({
      id: 'getDecision',
      method: 'GET',
      path: '/v1/decisions',
      role: 'viewer',
      tag,
      summary: 'The trace of one of the last 1,000 decisions of this gateway; with workers, of each of them',
      query: z.strictObject({ req_id: named('`x-request-id` of the answer') }),
      answer: decision,
      errors: [404, 503],
      async run({ query }) {
        const { each, workers } = await context.figures('decision', query.req_id);
        const found = each.find((decision) => decision !== undefined);
        return found ?? refuse(404, 'errors/resource_not_found', `${UNKNOWN_DECISION}${missingText(workers)}`);
      },
    }),
  ];
}

const UNKNOWN_DECISION = 'None of the last 1,000 decisions has this req_id.';

function missingText(workers: CountedWorkers | undefined): string {
  const missing = workers?.missing ?? [];
  return missing.length === 0 ? '' : ` These workers did not answer in time: ${missing.join(', ')}.`;
}

async function topOfGateway({ figures }: AdminContext, by: Ranking, limit: number) {
  const { each, workers } = await figures('top', by, MAX_TOP);
  const { accounts, ...rest } = sumOfTops(each, limit);
  return { ...rest, accounts: accounts.slice(0, limit), workers };
}

async function topOfFleet(context: AdminContext, by: Ranking, limit: number) {
  const others = (await listFleet(context)).filter(({ self }) => !self);
  const sum = new FleetSum();
  // This process knows more of itself than it reports to the others. If it has workers, they are others.
  sum.add(context.traffic.top(by, MAX_TOP));
  const processes = { counted: 1, of: others.length + 1 };
  await inSlices(others, ({ details }) => {
    if (details?.top === undefined) return;
    sum.add(details.top[by]);
    processes.counted++;
  });
  return { ...sum.top(limit), processes };
}
