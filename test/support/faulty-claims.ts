import type { NotedStep } from '../../src/core/claim.ts';
import type { ClaimStore } from '../../src/core/ports.ts';

export type CommandName = 'begin' | 'extend' | 'dispatch' | 'complete' | 'abandon' | 'inspect';

/**
 * What happens to a command. `lost`: it never arrives. `unheard`: it is executed, but its reply is lost. `late`: its
 * sender gives up, and it is executed when the test calls `deliver`. `hung`: its sender waits until the test calls
 * `deliver`.
 */
export type Delivery = 'ok' | 'lost' | 'unheard' | 'late' | 'hung';

/** A claim store behind an unreliable connection. */
export interface FaultyClaims extends ClaimStore {
  /** Every command that was sent, in order. */
  readonly sent: CommandName[];
  /** Each command that carried a note, with it. */
  readonly noted: string[];
  /** Set it for a store that takes notes. The memory store behind it ignores them. */
  notes: readonly NotedStep[] | undefined;
  /** What happens to the next commands of that name; the commands after them follow `always`. */
  next(command: CommandName, ...deliveries: Delivery[]): void;
  /** What happens to all commands for which `next` says nothing. */
  always: Delivery;
  /** Executes the commands that are late or hung. */
  deliver(): void;
  closed: boolean;
}

export class LineError extends Error {}

export function createFaultyClaims(store: ClaimStore): FaultyClaims {
  const deliveries = new Map<CommandName, Delivery[]>();
  const undelivered: (() => void)[] = [];
  const faulty = {
    synchronous: false,
    sent: [] as CommandName[],
    noted: [] as string[],
    always: 'ok' as Delivery,
    closed: false,
    next(command: CommandName, ...next: Delivery[]) {
      deliveries.set(command, [...(deliveries.get(command) ?? []), ...next]);
    },
    deliver() {
      for (const execute of undelivered.splice(0)) execute();
    },
    close() {
      faulty.closed = true;
    },
  };
  const send =
    (name: CommandName) =>
    async (...args: unknown[]): Promise<unknown> => {
      faulty.sent.push(name);
      const { note } = Object(args[1]) as { readonly note?: string };
      if (note !== undefined) faulty.noted.push(`${name} ${note}`);
      const execute = () => (store[name] as (...args: unknown[]) => unknown)(...args);
      switch (deliveries.get(name)?.shift() ?? faulty.always) {
        case 'ok':
          return execute();
        case 'lost':
          throw new LineError(`${name} was lost`);
        case 'unheard':
          await execute();
          throw new LineError(`${name} was not heard`);
        case 'late':
          undelivered.push(execute);
          throw new LineError(`${name} is late`);
        case 'hung':
          return new Promise((resolve) => undelivered.push(() => resolve(execute())));
      }
    };
  const commands = Object.fromEntries(
    (['begin', 'extend', 'dispatch', 'complete', 'abandon', 'inspect'] as const).map((name) => [name, send(name)]),
  );
  return Object.assign(faulty, commands) as unknown as FaultyClaims;
}
