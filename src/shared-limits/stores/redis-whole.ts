import { inSlices } from '../../base/slices.ts';
import {
  type Adjustment,
  type AdjustmentEntry,
  type AdjustmentState,
  applyEntry,
  type Head,
  targetKey,
  withEntry,
} from '../../core/adjustment.ts';
import type { AdjustmentReply } from '../lineage.ts';
import type { AdjustmentPart, ReadReply } from './redis-reply.ts';

/** Calls of one server. */
export interface PartReader {
  /** Returns what follows a head. */
  read(known: Head | undefined): Promise<ReadReply>;
  readPart(from: string): Promise<AdjustmentPart>;
}

type History = Pick<AdjustmentState, 'head' | 'recent'>;

/** Times that everything is read again before the reading fails, because the server was replaced meanwhile. */
const MAX_ROUNDS = 5;
const NO_CHANGES = { entries: [], unreadable: 0 };

/**
 * Reads the adjustments part after part: one reply with all of them would keep the server busy. The result is what the
 * server has at one moment, because the changes that came meanwhile are read last.
 * @throws the errors of the calls
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
    const all = ({ now }: ReadReply, brought: History, left: number) => {
      const state = { ...brought, adjustments: [...found.values()] };
      return { kind: 'all' as const, now, state, unreadable: left || undefined };
    };
    // The first part was read in the same step as the head.
    if (part.next === undefined) return all(reply, { head, recent }, unreadable.size);
    reply = await reader.read(head);
    if (reply.kind === 'same' || reply.kind === 'changes') {
      const { entries, unreadable: unread = 0 } = reply.kind === 'changes' ? reply : NO_CHANGES;
      let brought: History = { head, recent };
      for (const entry of entries) brought = bringForward(brought, entry, found, unreadable);
      // A limit of a change that cannot be read may be one more or one less.
      if (Math.abs(reply.size - found.size - unreadable.size) <= unread)
        return all(reply, brought, unreadable.size + unread);
      // Another server answers, or the key was written again, so the place where a part begins meant nothing.
      reply = await reader.read(undefined);
    }
  }
  if (reply.kind === 'none') return reply;
  throw new Error(`the adjustments were replaced ${MAX_ROUNDS} times while they were read`);
}

function bringForward(
  { recent }: History,
  entry: AdjustmentEntry,
  found: Map<string, Adjustment>,
  unreadable: Set<string>,
): History {
  applyEntry(found, entry);
  for (const { target } of entry.limits) unreadable.delete(targetKey(target));
  return { head: { version: entry.version, nonce: entry.nonce }, recent: withEntry(recent, entry) };
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
