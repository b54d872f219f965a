import type { Block } from './block.ts';

/** The reason of every block that a provider's answer causes (S30). */
export const PROVIDER = 'provider';

/** How long a doubled pause may be, in milliseconds, if the provider does not say how long. */
const LONGEST_DOUBLED_MS = 60_000;
/** How long after a pause its mark lasts: an answer after that is no longer one in a row. */
const MARK_MS = 60_000;
/** A request that tries whether the provider listens again has so long for its answer. Then the others follow. */
const PROBE_MS = 10_000;
/**
 * While it tries, the others are blocked for so long at a time. It is short, because a store may repeat a rejection by a
 * block from memory, and a client waits that long.
 */
const BLOCK_MS = 1_000;
/** Doubling further changes nothing, and would leave the safe integers. */
const MOST_IN_A_ROW = 40;

/** The provider refused a request: its target is paused, unless it is blocked already. */
export interface StartCooldown {
  readonly kind: 'start';
  /** How long the provider asks for, in milliseconds; undefined if it does not say. */
  readonly forMs: number | undefined;
  /** How long the first pause is if the provider does not say, in milliseconds. */
  readonly defaultMs: number;
  /** The longest pause, in milliseconds. */
  readonly maxMs: number;
  /** Whether the request was the one that tried: then its own block is replaced. */
  readonly isProbe: boolean;
}

/**
 * A change of a cooldown. `probe`: a request wants to go, after the pause is over. `end`: the provider accepted the
 * request that tried.
 */
export type CooldownCommand = StartCooldown | { readonly kind: 'probe' } | { readonly kind: 'end' };

/**
 * The result of a command. `started`: the target is paused for `forMs` from now on. `blocked`: it was blocked already,
 * or another request tries. `probe`: this request tries, and goes alone. `open`: nothing is paused.
 */
export interface CooldownReply {
  readonly state: 'started' | 'blocked' | 'probe' | 'open';
  /** Of `started`: the length of the pause in milliseconds; else 0. */
  readonly forMs: number;
}

/** What a store remembers of a cooldown beside its block, until some time after the pause. */
export interface CooldownMark {
  /** How many answers in a row were refusals. */
  readonly inARow: number;
  /** Until when a request tries, on the store's clock; 0 if none does. */
  readonly probeUntil: number;
}

/** A block or a mark to store, for so long from now on. */
export interface CooldownChange {
  /** Undefined: the block stays as it is. 0 milliseconds: it is lifted. */
  readonly blockMs?: number;
  /** Undefined: the mark stays as it is. */
  readonly mark?: CooldownMark & { readonly forMs: number };
  /** Whether the mark is deleted. */
  readonly forgets?: boolean;
  readonly reply: CooldownReply;
}

/** The numbers of a command, for the script and the statement that do the same on a server. */
export function numbersOf(command: CooldownCommand): readonly number[] {
  if (command.kind === 'end') return [];
  if (command.kind === 'probe') return [BLOCK_MS, PROBE_MS, MARK_MS];
  const { forMs = -1, defaultMs, maxMs, isProbe } = command;
  return [forMs, defaultMs, longestDoubledMs(defaultMs), maxMs, isProbe ? 1 : 0, MOST_IN_A_ROW, MARK_MS];
}

function longestDoubledMs(defaultMs: number): number {
  return Math.max(defaultMs, LONGEST_DOUBLED_MS);
}

const BLOCKED: CooldownReply = { state: 'blocked', forMs: 0 };
const OPEN: CooldownReply = { state: 'open', forMs: 0 };

/**
 * The rule of S30, for one target: what a command changes. Every store does this as one atomic step.
 * @param block the block of exactly this target, if it is not over
 * @param mark the mark of this target, if it is not over
 */
export function changeCooldown(
  command: CooldownCommand,
  block: Block | undefined,
  mark: CooldownMark | undefined,
  now: number,
): CooldownChange {
  const { inARow = 0, probeUntil = 0 } = mark ?? {};
  switch (command.kind) {
    case 'start': {
      // The pause is never extended, and never replaces an operator's block.
      if (block !== undefined && !(command.isProbe && block.reason === PROVIDER)) return { reply: BLOCKED };
      const { defaultMs, maxMs } = command;
      const doubledMs = Math.min(defaultMs * 2 ** inARow, longestDoubledMs(defaultMs));
      const forMs = Math.min(command.forMs ?? doubledMs, maxMs);
      return {
        blockMs: forMs,
        mark: { inARow: Math.min(inARow + 1, MOST_IN_A_ROW), probeUntil: 0, forMs: forMs + MARK_MS },
        reply: { state: 'started', forMs },
      };
    }
    case 'probe':
      if (mark === undefined) return { reply: OPEN };
      if (block !== undefined) return { reply: BLOCKED };
      if (probeUntil > now) return { blockMs: BLOCK_MS, reply: BLOCKED };
      // Its process died, or its program does not report accepted answers.
      if (probeUntil > 0) return { forgets: true, reply: OPEN };
      return {
        blockMs: BLOCK_MS,
        mark: { inARow, probeUntil: now + PROBE_MS, forMs: PROBE_MS + MARK_MS },
        reply: { state: 'probe', forMs: 0 },
      };
    case 'end':
      if (mark === undefined) return { reply: OPEN };
      return { forgets: true, reply: OPEN, ...(block?.reason === PROVIDER && { blockMs: 0 }) };
  }
}
