import type { ClaimStore } from '../../src/core/ports.ts';

export type CommandName = 'begin' | 'extend' | 'dispatch' | 'complete' | 'abandon' | 'inspect';

/**
 * What becomes of a command: `lost` on its way; `unheard`, carried out, but its reply lost; `late`, given up by its sender, carried out when it
 * is delivered; `hung` until it is delivered.
 */
export type Fate = 'ok' | 'lost' | 'unheard' | 'late' | 'hung';

/** A claim store behind a bad line. */
export interface FaultyClaims extends ClaimStore {
  /** Every command that was sent, in order. */
  readonly sent: CommandName[];
  /** What becomes of the next commands of that name; `ok` when none is left. */
  next(command: CommandName, ...fates: Fate[]): void;
  /** What becomes of all commands that have no fate of their own. */
  always: Fate;
  /** Carries out what is late or hung. */
  deliver(): void;
  closed: boolean;
}

export class LineError extends Error {}

export function createFaultyClaims(store: ClaimStore): FaultyClaims {
  const fates = new Map<CommandName, Fate[]>();
  const held: (() => void)[] = [];
  const faulty = {
    synchronous: false,
    sent: [] as CommandName[],
    always: 'ok' as Fate,
    closed: false,
    next(command: CommandName, ...next: Fate[]) {
      fates.set(command, [...(fates.get(command) ?? []), ...next]);
    },
    deliver() {
      for (const carryOut of held.splice(0)) carryOut();
    },
    close() {
      faulty.closed = true;
    },
  };
  const send =
    (name: CommandName) =>
    async (...args: unknown[]): Promise<unknown> => {
      faulty.sent.push(name);
      const carryOut = () => (store[name] as (...args: unknown[]) => unknown)(...args);
      switch (fates.get(name)?.shift() ?? faulty.always) {
        case 'ok':
          return carryOut();
        case 'lost':
          throw new LineError(`${name} was lost`);
        case 'unheard':
          await carryOut();
          throw new LineError(`${name} was not heard`);
        case 'late':
          held.push(carryOut);
          throw new LineError(`${name} is late`);
        case 'hung':
          return new Promise((resolve) => held.push(() => resolve(carryOut())));
      }
    };
  const commands = Object.fromEntries(
    (['begin', 'extend', 'dispatch', 'complete', 'abandon', 'inspect'] as const).map((name) => [name, send(name)]),
  );
  return Object.assign(faulty, commands) as unknown as FaultyClaims;
}
