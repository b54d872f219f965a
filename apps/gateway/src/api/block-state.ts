import type { Limiter } from 'headgate';
import type { Block } from 'headgate/limits';
import type { z } from 'zod';
import type { Account } from '../config/schema.ts';
import type { blocked } from './schemas.ts';

export type ShownBlock = z.output<typeof blocked>;

/**
 * Reads the block of an account, and then the blocks of its routes.
 * @returns the block that rejects requests on a route, or without a route, on all of them
 * @throws the store's errors
 */
export async function blocksOf(
  limiter: Limiter,
  { id: account }: Account,
): Promise<(route?: string) => Promise<ShownBlock | null>> {
  const ofAccount = await limiter.blocked({ account });
  return async (route) => {
    if (route === undefined) return shown(ofAccount, 'account');
    const block = await limiter.blocked({ account, route });
    // Of two blocks, the store names the block that ends last. The account's block was read earlier, so its remaining
    // time was longer.
    const isOfAccount = block !== undefined && ofAccount !== undefined && block.forMs <= ofAccount.forMs;
    return shown(block, isOfAccount ? 'account' : 'route');
  };
}

export function shown(block: Block | undefined, scope: ShownBlock['scope']): ShownBlock | null {
  if (block === undefined) return null;
  const { forMs, reason = null } = block;
  return { scope, forMs, until: new Date(Date.now() + forMs).toISOString(), reason };
}
