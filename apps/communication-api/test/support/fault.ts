/**
 * When a fault happens: before the server has the request, while it receives the body, or after it has done what was
 * asked.
 */
export const FAULT_PHASES = ['before', 'in', 'after'] as const;
/** What the client sees: the connection ends, nothing happens any more, or an answer that makes no sense. */
export const FAULT_KINDS = ['cut', 'stall', 'wrong'] as const;

export interface Fault {
  readonly phase: (typeof FAULT_PHASES)[number];
  readonly kind: (typeof FAULT_KINDS)[number];
}

/** Every fault. */
export const FAULTS: readonly Fault[] = FAULT_PHASES.flatMap((phase) => FAULT_KINDS.map((kind) => ({ phase, kind })));
