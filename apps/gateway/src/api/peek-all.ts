import type { Limiter, LimitRequest, WindowStatus } from 'headgate';
import { type Groups, groupAccount, type InFlightStatus } from 'headgate/limits';
import type { Account } from '../config/schema.ts';
import { blocksOf, type ShownBlock, shown } from './block-state.ts';

/** The windows of the account, then those of each group, with its name. */
export async function peekAll(limiter: Limiter, { groups = {}, ...subject }: LimitRequest): Promise<WindowStatus[]> {
  const { route, lane } = subject;
  const [own = [], ...ofGroups] = await Promise.all([
    limiter.peek(subject),
    ...Object.entries(groups).map(async ([group, id]) => {
      const windows = await limiter.peek({ account: groupAccount(group, id), route, lane });
      return windows.map((window) => ({ ...window, group }));
    }),
  ]);
  return [...own, ...ofGroups.flat()];
}

/** The requests in flight of a limit, and the group whose limit it is; absent if it is the account's. */
export type ShownInFlight = InFlightStatus & { readonly group?: string };

/** The requests in flight of the account and of each group, if a limit bounds them. */
export async function inFlightOfAll(
  limiter: Limiter,
  { groups = {}, ...subject }: LimitRequest,
): Promise<ShownInFlight[]> {
  const { route, lane } = subject;
  const all = await Promise.all([
    limiter.inFlight(subject),
    ...Object.entries(groups).map(async ([group, id]) => {
      const status = await limiter.inFlight({ account: groupAccount(group, id), route, lane });
      return status && { ...status, group };
    }),
  ]);
  return all.filter((status) => status !== undefined);
}

/** The block that rejects requests of the account on the route: its own, or else the first one of a group. */
export async function blockOfAll(
  limiter: Limiter,
  account: Account,
  groups: Groups | undefined,
  route: string,
): Promise<ShownBlock | null> {
  const own = await (await blocksOf(limiter, account))(route);
  if (own !== null) return own;
  const blocks = await Promise.all(
    Object.entries(groups ?? {}).map(([name, id]) => limiter.blocked({ account: groupAccount(name, id), route })),
  );
  return shown(
    blocks.find((block) => block !== undefined),
    'group',
  );
}
