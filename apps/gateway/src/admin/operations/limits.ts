import type { LimitInput } from 'headgate';
import type { AdjustTarget } from 'headgate/limits';
import type { Changed, LimitChange } from 'headgate/shared-limits';
import type { AdjustmentEntry } from 'headgate/stores';
import { z } from 'zod';
import { Answered, type AnswerFields, type Caller, type Operation, operation } from '../../api/operation.ts';
import { named, next, paging, reason } from '../../api/schemas.ts';
import { limit as limitSchema, limits as limitsSchema } from '../../config/schema/limits.ts';
import { shownEntry } from '../../traffic/limit-entry.ts';
import { previewAccounts } from '../account-preview.ts';
import type { AdminContext } from '../context.ts';
import { refuseUnknownNames } from '../known-names.ts';
import {
  checkedTarget,
  refuseChange,
  shownApplied,
  shownPreview,
  versionIn,
  windowsFor,
  withSubjects,
} from '../limit-change.ts';
import { layersOfConfig, listLimits } from '../limit-index.ts';
import { exportLimits, groupLimits, type ShownLimit, shownLimit } from '../limit-list.ts';
import { LAYERS } from '../limit-origins.ts';
import {
  changed,
  confirm,
  end,
  entry,
  groupLimit,
  how,
  MAX_CHANGES,
  preconditions,
  previewed,
  shown,
  targetShape,
  windows,
} from '../limit-schemas.ts';
import { pageOf } from '../paging.ts';

const tag = 'Limits';

/** A change of limits, as a request asks for it. */
interface Wanted {
  readonly changes: readonly LimitChange[];
  readonly reason: string;
  readonly forMs?: number | undefined;
  readonly until?: string | undefined;
  readonly confirm: boolean;
  readonly query: { readonly dryRun: boolean; readonly wait?: 'applied' | undefined };
}

/** Limits that operators adjust while processes run. Every process with the same store obeys them. */
export function limitOperations(context: AdminContext): Operation[] {
  const { config, sharedLimits } = context;
  /** Looks a few adjustments up: there may be very many. */
  const currentOf = (targets: readonly AdjustTarget[]) =>
    sharedLimits.preview(targets.map((target) => ({ target, windows: 'recommended' as const })));
  const showAll = (targets: readonly AdjustTarget[]) => {
    const limits = layersOfConfig(config());
    return currentOf(targets).map((current) => shownLimit(limits, current));
  };
  const showOne = (of: AdjustTarget) => showAll([of])[0] as ShownLimit;
  const etagOf = (of: AdjustTarget) => ({ etag: `"${currentOf([of])[0]?.adjustment?.version ?? 0}"` });

  /** @throws InputError, and the store's errors */
  const change = async (wanted: Wanted, caller: Caller): Promise<Changed | Answered | z.input<typeof previewed>> => {
    const { reason, forMs, until, confirm, query } = wanted;
    try {
      refuseUnknownNames(context, wanted.changes);
      const changes = withSubjects(context, wanted.changes);
      const preview = sharedLimits.preview(changes);
      if (query.dryRun) return { changes: preview.map(shownPreview), ...(await previewAccounts(context, changes)) };
      const end = until === undefined ? { forMs } : { forMs, until: Date.parse(until) };
      return await sharedLimits.change(changes, { by: caller.name, reason: reason || undefined, confirm, ...end });
    } catch (error) {
      return refuseChange(error, etagOf);
    }
  };
  const waited = async ({ revision }: Changed, { wait }: Wanted['query']) => ({
    revision,
    durable: sharedLimits.state.durable,
    ...(wait === undefined ? {} : { applied: shownApplied(await sharedLimits.applied(revision)) }),
  });
  /** The log line contains the revision, which also identifies the line of the change. */
  const answered = ({ revision }: Changed, result: unknown, headers: AnswerFields = {}) =>
    new Answered(result, headers, { revision });
  const changeOne = async (of: AdjustTarget, wanted: Wanted, caller: Caller) => {
    const done = await change(wanted, caller);
    if (done instanceof Answered || 'changes' in done) return done;
    return answered(done, { ...showOne(of), ...(await waited(done, wanted.query)) }, etagOf(of));
  };

  return [
    operation({
      id: 'listLimits',
      method: 'GET',
      path: '/v1/limits',
      role: 'viewer',
      tag,
      summary: 'The limits of every layer: the config, and what operators have set',
      query: z.strictObject({
        layer: z.enum(LAYERS).optional(),
        name: named('Name of the account, provider or plan').optional(),
        adjusted: z.literal(true).optional().describe('Only what operators have set'),
        ...paging,
      }),
      answer: z.object({
        revision: z.string(),
        durable: z.boolean(),
        limits: z.array(shown),
        groups: z
          .array(groupLimit)
          .describe(
            'The limits of groups, on the first page without a filter. An id of a group, such as `group:NAME:ID`, is changed as an account',
          ),
        next,
      }),
      async run({ query }) {
        const { revision, durable } = sharedLimits.state;
        const limits = layersOfConfig(config());
        const page = pageOf(await listLimits(limits, sharedLimits.list(), query), query);
        const { cursor, layer, name, adjusted } = query;
        const isWhole = [cursor, layer, name, adjusted].every((value) => value === undefined);
        return {
          revision,
          durable,
          limits: page.entries.map((each) => shownLimit(limits, each)),
          groups: isWhole ? groupLimits(limits) : [],
          next: page.next,
        };
      },
    }),
    operation({
      id: 'getLimit',
      method: 'GET',
      path: '/v1/limit',
      role: 'viewer',
      tag,
      summary: 'One limit. Its `etag` is the version of the adjustment, 0 without one',
      query: z.strictObject(targetShape),
      answer: shown,
      etagOn: [200],
      run({ query }) {
        const of = checkedTarget(query);
        return new Answered(showOne(of), etagOf(of));
      },
    }),
    operation({
      id: 'putLimit',
      method: 'PUT',
      path: '/v1/limit',
      role: 'operator',
      tag,
      summary: 'Adjusts one limit in every process with the same store',
      description: '`If-Match` with the `etag` that the client has seen, or `If-None-Match: *`, refuses a lost update.',
      query: z.strictObject({ ...targetShape, ...how }),
      body: z.strictObject({ windows, reason, confirm, ...end }),
      headers: preconditions,
      answer: z.union([shown.extend(changed.shape), previewed]),
      errors: [409, 412, 503],
      etagOn: [200, 412],
      run({ query: { dryRun, wait, ...given }, body: { windows, ...rest }, headers }, caller) {
        const of = checkedTarget(given);
        const change = { target: of, windows: windowsFor(of, windows), ifVersion: versionIn(headers) };
        return changeOne(of, { changes: [change], ...rest, query: { dryRun, wait } }, caller);
      },
    }),
    operation({
      id: 'resetLimit',
      method: 'DELETE',
      path: '/v1/limit',
      role: 'operator',
      tag,
      summary: 'Removes what operators have set, so that the config applies again',
      description: 'Also if nothing was set.',
      query: z.strictObject({ ...targetShape, ...how, reason }),
      headers: preconditions,
      answer: z.union([shown.extend(changed.shape), previewed]),
      errors: [409, 412, 503],
      etagOn: [200, 412],
      run({ query: { dryRun, wait, reason, ...given }, headers }, caller) {
        const of = checkedTarget(given);
        const change = { target: of, windows: 'recommended' as const, ifVersion: versionIn(headers) };
        return changeOne(of, { changes: [change], reason, confirm: true, query: { dryRun, wait } }, caller);
      },
    }),
    operation({
      id: 'changeLimits',
      method: 'POST',
      path: '/v1/limits/batch',
      role: 'operator',
      tag,
      summary: 'Adjusts or resets up to 100 limits, all or none',
      query: z.strictObject(how),
      body: z.strictObject({
        changes: z
          .array(
            z.strictObject({
              target: z.strictObject(targetShape),
              windows: z
                .union([limitSchema, z.null()], { error: 'must be an array of windows such as "60/1m", or null' })
                .describe('null resets the limit'),
              version: z.int().min(0).optional().describe('The version that the client has seen'),
            }),
          )
          .min(1)
          .max(MAX_CHANGES),
        reason,
        confirm,
        ...end,
      }),
      answer: z.union([changed.extend({ limits: z.array(shown) }), previewed]),
      errors: [409, 412, 503],
      etagOn: [412],
      async run({ query, body: { changes, ...rest } }, caller) {
        const wanted = changes.map(({ target, windows, version }) => ({
          target: checkedTarget(target),
          windows: windows === null ? ('recommended' as const) : (windows as LimitInput),
          ifVersion: version,
        }));
        const done = await change({ changes: wanted, ...rest, query }, caller);
        if (done instanceof Answered || 'changes' in done) return done;
        return answered(done, { ...(await waited(done, query)), limits: showAll(wanted.map(({ target }) => target)) });
      },
    }),
    operation({
      id: 'listLimitChanges',
      method: 'GET',
      path: '/v1/limits/history',
      role: 'viewer',
      tag,
      summary: 'The changes of limits, the newest first',
      query: z.strictObject({
        ...targetShape,
        before: z.int().min(1).optional().describe('Only changes with a smaller version'),
        limit: paging.limit,
      }),
      answer: z.object({
        entries: z.array(entry),
        next: z.int().nullable().describe('`before` of the next request; null at the end'),
      }),
      errors: [503],
      async run({ query: { before, limit, ...given } }) {
        const of = checkedTarget(given);
        const target = Object.keys(of).length === 0 ? undefined : of;
        const entries = await sharedLimits.history({ before, limit, target });
        return {
          entries: entries.map(shownEntry),
          next: entries.length === limit ? ((entries.at(-1) as AdjustmentEntry).version ?? null) : null,
        };
      },
    }),
    operation({
      id: 'exportLimits',
      method: 'GET',
      path: '/v1/limits/export',
      role: 'viewer',
      tag,
      summary: 'The `limits` of the config with every adjustment written into it',
      description: 'Put it into the file, reload, and then reset the adjustments.',
      answer: limitsSchema,
      run: () => exportLimits(config(), sharedLimits.list()),
    }),
  ];
}
