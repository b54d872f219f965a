import { z } from 'zod';
import { type Operation, operation } from '../../api/operation.ts';
import { countedWorkers, moment, next, paging } from '../../api/schemas.ts';
import { ROLES } from '../../config/schema/admin.ts';
import { version } from '../../operations/version.ts';
import { COUNTED } from '../../traffic/series.ts';
import { sumOfLoads } from '../combined-figures.ts';
import type { AdminContext } from '../context.ts';
import { pageOf } from '../paging.ts';
import { figuresOfCandidate } from '../shadow-figures.ts';
import { shadowCounts } from '../shadow-schemas.ts';
import { shownConfig } from '../shown-config.ts';

const tag = 'Process';

const perSecond = z.object(
  Object.fromEntries(COUNTED.map((name) => [name, z.number()])) as Record<(typeof COUNTED)[number], z.ZodNumber>,
);

const status = z.object({
  name: z.literal('headgate'),
  version: z.string(),
  instance: z.string().describe('How the list of processes calls it'),
  startedAt: moment,
  caller: z
    .object({ name: z.string(), role: z.enum(ROLES) })
    .describe('The token of this request, so that a client shows only what its role may do'),
  state: z.enum(['serving', 'draining']),
  store: z.object({
    kind: z.enum(['memory', 'redis', 'redis-cluster', 'postgres']),
    health: z.enum(['ok', 'degraded']),
    breaker: z.enum(['closed', 'open', 'half-open']),
  }),
  limits: z.object({
    revision: z.string().describe('The last change that this process obeys; `0` without one'),
    version: z.int().describe('The number of that change'),
    source: z
      .enum(['store', 'kept', 'file', 'base'])
      .describe(
        'kept: the store is away, and the last known apply; file: it was never read, and the kept file applies; base: there is none',
      ),
    ageMs: z.number().nullable().describe('Time since the store was read'),
    durable: z.boolean().describe('Whether the adjustments outlive every process'),
    adjustments: z.int(),
    unusable: z.int().describe('Adjustments that this version cannot read, or that do not fit the config'),
  }),
  perSecond: perSecond.describe('Average of the last 10 seconds'),
  claims: z.object({
    inFlight: z.int().describe('Claims that this gateway holds'),
    background: z.int().describe('Commands that are repeated until the store acknowledges them'),
    orphansMet: z.int().describe('Orphans that retries ran into; at most 1,000 are remembered'),
  }),
  leases: z
    .object({
      decisions: z.int().describe('Decisions without a call of the store'),
      leased: z
        .int()
        .describe(
          'Units charged ahead of requests, or refunded into a lease: the sum of used, givenBack, lost and held',
        ),
      used: z.int().describe('Units that requests took'),
      givenBack: z.int().describe('Units that went back, or whose windows were over'),
      lost: z.int().describe('Units that stay charged until their windows are over'),
      held: z.int().describe('Units that no request took yet'),
      pairs: z.int().describe('Pairs of account and route whose requests are watched'),
    })
    .nullable()
    .describe('Leases since the start; null if they are off'),
  shadow: z
    .object({
      source: z.enum(['config', 'operator']),
      sample: z.number(),
      store: z.enum(['same', 'memory']),
      since: moment,
      total: shadowCounts,
    })
    .nullable()
    .describe('The candidate for other limits; null without one'),
  workers: countedWorkers,
});

export type Status = z.output<typeof status>;

const key = z.object({
  name: z.string().describe('Its account is `key:` and this name'),
  application: z.string(),
  plan: z.string().nullable(),
  lane: z.string().nullable(),
  role: z.enum(['service', 'account', 'scoped']),
  scope: z.string().nullable(),
  sha256: z.string().describe('The first 8 digits'),
  expiresAt: moment.nullable(),
});

export type Key = z.output<typeof key>;

async function shownShadow(context: AdminContext): Promise<z.input<typeof status>['shadow']> {
  const { running } = context.shadow;
  if (running === undefined) return null;
  const { source, settings } = running.candidate;
  const { since, total } = await figuresOfCandidate(context, running);
  return { source, sample: settings.sample, store: settings.store, since, total };
}

/** State, API keys and config of a process. */
export function statusOperations(context: AdminContext): Operation[] {
  const { config, sharedLimits, store, isReady, startedAt } = context;
  return [
    operation({
      id: 'getStatus',
      method: 'GET',
      path: '/v1/status',
      role: 'viewer',
      tag,
      summary: 'How this gateway does',
      answer: status,
      errors: [503],
      async run(_, { name, role }) {
        const { each, workers } = await context.figures('load');
        const { perSecond, inFlight, background, orphansMet, health, breaker, leases = null } = sumOfLoads(each);
        return {
          name: 'headgate' as const,
          version,
          instance: sharedLimits.instance,
          startedAt: startedAt.toISOString(),
          caller: { name, role },
          state: isReady() ? ('serving' as const) : ('draining' as const),
          store: { kind: store.kind, health, breaker },
          limits: { ...sharedLimits.state, ageMs: sharedLimits.state.ageMs ?? null },
          perSecond,
          claims: { inFlight, background, orphansMet },
          leases,
          shadow: await shownShadow(context),
          ...(workers && { workers }),
        };
      },
    }),
    operation({
      id: 'listKeys',
      method: 'GET',
      path: '/v1/keys',
      role: 'viewer',
      tag,
      summary: 'The keys of the config, without their secrets',
      query: z.strictObject(paging),
      answer: z.object({ keys: z.array(key), next }),
      run({ query }) {
        const page = pageOf(config().keys, query);
        const keys = page.entries.map(
          ({ name, application, plan = null, lane = null, role, scope, sha256, expiresAt = null }) => ({
            name,
            application,
            plan,
            lane,
            role,
            scope,
            sha256: sha256.slice(0, 8),
            expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
          }),
        );
        return { keys, next: page.next };
      },
    }),
    operation({
      id: 'getConfig',
      method: 'GET',
      path: '/v1/config',
      role: 'viewer',
      tag,
      summary: 'The config of now, with its defaults and without its secrets',
      answer: z.record(z.string(), z.unknown()),
      run: () => shownConfig(config()),
    }),
  ];
}
