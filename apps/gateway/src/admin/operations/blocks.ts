import { isHeadgateError } from 'headgate';
import type { BlockTarget } from 'headgate/limits';
import { z } from 'zod';
import { blocksOf } from '../../api/block-state.ts';
import { InputError } from '../../api/input.ts';
import { type Caller, type Operation, operation } from '../../api/operation.ts';
import { blocked, named, reason } from '../../api/schemas.ts';
import type { Account } from '../../config/schema.ts';
import { isRefusal, type Refusal, refuse } from '../../exchange/refusal.ts';
import { type AdminContext, accountOf, audit, limitedRoutes, refuseRoute, subjectOf } from '../context.ts';

const tag = 'Limits';
const YEAR_MS = 365 * 86_400_000;

const target = {
  account: named('An account of the config'),
  route: named('Only this route of it, such as `POST /api/v1/emails`; otherwise every route').optional(),
};

const answer = z.object({
  account: z.string(),
  route: z.string().nullable(),
  blocked: blocked.nullable().describe('The block that rejects every request of the account, or of this route'),
  unlimited: z
    .array(z.string())
    .describe(
      'Routes where the account has no limit. Nothing is checked there, so a block does not reject there either',
    ),
});

/** A target of the config. */
interface Target {
  readonly of: Account;
  readonly route: string | undefined;
}

/** Blocks of accounts and of their routes. They apply in every process with the same store. */
export function blockOperations(context: AdminContext): Operation[] {
  const { config, limiter, traffic } = context;
  const targetOf = (query: BlockTarget): Target | Refusal => {
    const of = accountOf(context, query.account);
    if (isRefusal(of)) return of;
    return refuseRoute(config(), query.route, of) ?? { of, route: query.route };
  };
  const unlimited = ({ of, route }: Target): string[] =>
    limitedRoutes(config(), of, route).filter((name) => limiter().windowSet(subjectOf(of, name)).windows.length === 0);
  const stateOf = async (at: Target): Promise<z.input<typeof answer>> => {
    const read = await blocksOf(limiter(), at.of);
    return { account: at.of.id, route: at.route ?? null, blocked: await read(at.route), unlimited: unlimited(at) };
  };
  /** Reports the operator and the action in the log and in the events. */
  const report = (
    { of, route }: Target,
    caller: Caller,
    state: 'account_blocked' | 'account_unblocked',
    fields: Readonly<Record<string, unknown>>,
  ): void => {
    const account = config().log.account ? { account: of.id } : {};
    audit(context, caller, state.replace('_', ' '), { ...account, route: route ?? null, ...fields });
    traffic.onState({ state, by: caller.name, account: of.id, route });
  };

  return [
    operation({
      id: 'getBlock',
      method: 'GET',
      path: '/v1/block',
      role: 'viewer',
      tag,
      summary: 'The block that rejects every request of an account, or of one of its routes',
      query: z.strictObject(target),
      answer,
      errors: [404, 503],
      run({ query }) {
        const at = targetOf(query as BlockTarget);
        return isRefusal(at) ? at : stateOf(at);
      },
    }),
    operation({
      id: 'putBlock',
      method: 'PUT',
      path: '/v1/block',
      role: 'operator',
      tag,
      summary: 'Blocks an account, or one of its routes, in every process with the same store',
      description:
        'It replaces the block of the same account or route, also with an earlier end. It needs `forMs` or `until`. A block has no version, so `If-Match` has no effect.',
      query: z.strictObject(target),
      body: z.strictObject({
        forMs: z.int().min(1).max(YEAR_MS).optional().describe('How long it lasts: at most a year'),
        until: z.iso
          .datetime({ offset: true, error: 'must be a time in ISO 8601 with its offset' })
          .optional()
          .describe('When it is over, in place of `forMs`'),
        reason: z
          .string()
          .max(200)
          .regex(/^\P{Cc}*$/u, 'must have no control characters')
          .default('')
          .describe('Why. The client reads it in the `detail` of its 429, and the log has it'),
        reset: z
          .boolean()
          .default(false)
          .describe('Whether the same step deletes the counters, so that every window is empty when the block ends'),
      }),
      answer,
      errors: [404, 409, 503],
      async run({ query, body }, caller) {
        const at = targetOf(query as BlockTarget);
        if (isRefusal(at)) return at;
        const forMs = durationOf(body);
        if (unlimited(at).length === limitedRoutes(config(), at.of, at.route).length)
          return refuse(
            409,
            'errors/conflict',
            'The account has no limit there, so nothing would be rejected: give it a limit first.',
          );
        const { id: account } = at.of;
        const refusal = await limiter()
          .block(at.route === undefined ? { account } : { account, route: at.route }, {
            forMs,
            reset: body.reset,
            ...(body.reason === '' ? {} : { reason: body.reason }),
          })
          .then(() => undefined, refuseBlock);
        if (refusal !== undefined) return refusal;
        report(at, caller, 'account_blocked', { forMs, reason: body.reason, reset: body.reset });
        return stateOf(at);
      },
    }),
    operation({
      id: 'endBlock',
      method: 'DELETE',
      path: '/v1/block',
      role: 'operator',
      tag,
      summary: 'Lifts the block of an account, or of one of its routes',
      description: 'Also if there is none. The block of an account and those of its routes are lifted one by one.',
      query: z.strictObject({ ...target, reason }),
      answer,
      errors: [404, 503],
      async run({ query: { reason, ...query } }, caller) {
        const at = targetOf(query as BlockTarget);
        if (isRefusal(at)) return at;
        const { id: account } = at.of;
        await limiter().unblock(at.route === undefined ? { account } : { account, route: at.route });
        report(at, caller, 'account_unblocked', { reason });
        return stateOf(at);
      },
    }),
  ];
}

/** @throws InputError */
function durationOf({ forMs, until }: { forMs?: number | undefined; until?: string | undefined }): number {
  if ((forMs === undefined) === (until === undefined))
    throw new InputError([{ path: 'forMs', reason: 'give either this or until: a block has one end' }]);
  if (until === undefined) return forMs as number;
  const left = Date.parse(until) - Date.now();
  if (left >= 1 && left <= YEAR_MS) return left;
  throw new InputError([{ path: 'until', reason: 'must be in the future, and at most a year from now' }]);
}

/** The store is out of room for another block. Every other error is thrown. */
function refuseBlock(error: unknown): Refusal {
  if (isHeadgateError(error, 'store_full') || isHeadgateError(error, 'invalid_option'))
    return refuse(409, 'errors/conflict', error.message);
  throw error;
}
