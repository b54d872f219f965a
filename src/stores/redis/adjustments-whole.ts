import { type Adjustment, applyEntry, type Head, withEntry } from '../../core/adjustment.ts';
import type { AdjustmentReply } from '../../core/lineage.ts';
import { inSlices } from '../../core/slices.ts';
import type { AdjustmentPart, ReadReply } from './adjustments-reply.ts';

/** Calls of one server. */
export interface PartReader {
  /** Returns what follows a head. */
  read(known: Head | undefined): Promise<ReadReply>;
  readPart(from: string): Promise<AdjustmentPart>;
}

/** Times that everything is read again before the reading fails, because the server was replaced meanwhile. */
const MAX_ROUNDS = 5;

/**
 * Reads the adjustments part after part: one reply with all of them would keep the server busy. The result is what the
 * server has at one moment, because the changes that came meanwhile are read last.
 * @throws what the calls throw
 */
export async function readWhole(
  first: Extract<ReadReply, { readonly kind: 'all' }>,
  reader: PartReader,
): Promise<AdjustmentReply> {
  let reply: ReadReply = first;
  for (let round = 0; round < MAX_ROUNDS && reply.kind === 'all'; round++) {
    const { head, recent, part } = reply;
    const found = new Map<string, Adjustment>();
    const unreadable = new Set<string>();
    await collect(part, found, unreadable);
    for (let { next } = part; next !== undefined; ) {
      const following = await reader.readPart(next);
      await collect(following, found, unreadable);
      next = following.next;
    }
    const state = { head, recent, adjustments: [...found.values()] };
    const all = { kind: 'all' as const, now: reply.now, state, unreadable: unreadable.size || undefined };
    // The first part was read in the same step as the head.
    if (part.next === undefined) return all;
    reply = await reader.read(head);
    if (reply.kind === 'changes') {
      let brought = { head, recent };
      for (const entry of reply.entries) {
        applyEntry(found, entry);
        brought = { head: { version: entry.version, nonce: entry.nonce }, recent: withEntry(brought.recent, entry) };
      }
      const left = unreadable.size + (reply.unreadable ?? 0);
      return {
        ...all,
        now: reply.now,
        state: { ...brought, adjustments: [...found.values()] },
        unreadable: left || undefined,
      };
    }
    if (reply.kind === 'same') {
      if (found.size + unreadable.size === reply.size) return { ...all, now: reply.now };
      // The key was deleted and written again meanwhile, so the place where a part begins meant nothing.
      reply = await reader.read(undefined);
    }
  }
  if (reply.kind === 'none') return reply;
  throw new Error(`the adjustments were replaced ${MAX_ROUNDS} times while they were read`);
}

function collect(
  { adjustments }: AdjustmentPart,
  found: Map<string, Adjustment>,
  unreadable: Set<string>,
): Promise<void> {
  return inSlices(adjustments, ([key, adjustment]) => {
    if (adjustment === undefined) unreadable.add(key);
    else found.set(key, adjustment);
  });
}
