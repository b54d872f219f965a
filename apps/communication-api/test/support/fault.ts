import { NIGHTLY } from 'headgate-testbed/nightly';

/** When a fault happens: before the server gets the request, while it gets it, or after it did the work. */
export const FAULT_PHASES = ['before', 'in', 'after'] as const;
/** How the client sees it: the connection ends, nothing happens any more, or an answer makes no sense. */
export const FAULT_KINDS = ['cut', 'stall', 'wrong'] as const;

export interface Fault {
  readonly phase: (typeof FAULT_PHASES)[number];
  readonly kind: (typeof FAULT_KINDS)[number];
}

/**
 * Every fault at every step, with a name for its test. Each that stalls lasts until a deadline, so those before the last step
 * run only at night.
 */
export const faultsAt = <Step extends string>(steps: readonly Step[]) =>
  steps.flatMap((step) =>
    FAULT_PHASES.flatMap((phase) =>
      FAULT_KINDS.filter((kind) => NIGHTLY || kind !== 'stall' || step === steps.at(-1)).map((kind) => ({
        ...{ step, fault: { phase, kind } satisfies Fault, name: `${step}: ${phase}, ${kind}` },
      })),
    ),
  );

/** Every fault at night, and every third per change: where the steps before are the ones that matter. */
export const someFaultsAt = <Step extends string>(steps: readonly Step[]) =>
  faultsAt(steps).filter((_, number) => NIGHTLY || number % 3 === 0);
