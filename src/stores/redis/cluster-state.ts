import type { Commands, RedisNode } from './client.ts';
import { ALL_SLOTS, NO_SLOTS, SlotSet } from './slot-set.ts';

/** A server, and the slots of its keys. */
export interface ServerState {
  readonly node: RedisNode;
  /** A new one after each start of the server, which makes positions of SCAN invalid. */
  readonly run: string;
  /** The slots that it owns or imports, without those that it exports. */
  readonly slots: SlotSet;
  /** Slots that it is moving to another server. */
  readonly exported: SlotSet;
  /** The slots of which it knows an owner. */
  readonly assigned: SlotSet;
}

/** Asks a server for its state. It knows its own slots best: a client learns of a change only when it is redirected. */
export async function serverState({ isCluster }: Commands, node: RedisNode): Promise<ServerState> {
  const [info, nodes] = await Promise.all([
    node.ask('INFO', 'server'),
    isCluster ? node.ask('CLUSTER', 'NODES') : undefined,
  ]);
  const run = /^run_id:(\w+)/m.exec(String(info))?.[1] ?? '';
  if (nodes === undefined) return { node, run, slots: ALL_SLOTS, exported: NO_SLOTS, assigned: ALL_SLOTS };
  const lines = String(nodes)
    .split('\n')
    .map((line) => line.split(' '));
  const own = lines.find(([, , flags]) => flags?.split(',').includes('myself'))?.slice(8) ?? [];
  const exported = slotsIn(own, /^\[(\d+)->-/);
  const slots = slotsIn(own, RANGE)
    .without(exported)
    .or(slotsIn(own, /^\[(\d+)-<-/));
  return {
    node,
    run,
    slots,
    exported,
    assigned: slotsIn(
      lines.flatMap((words) => words.slice(8)),
      RANGE,
    ),
  };
}

const RANGE = /^(\d+)(?:-(\d+))?\s*$/;

function slotsIn(words: readonly string[], form: RegExp): SlotSet {
  const ranges = words.flatMap((word): [number, number][] => {
    const [, first, last = first] = form.exec(word) ?? [];
    return first === undefined ? [] : [[Number(first), Number(last)]];
  });
  return SlotSet.of(ranges);
}
