import { monotonicClock } from '../../core/clock.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { CallQueue, type QueuedItem } from './call-queue.ts';
import type { Row } from './database.ts';
import type { Server } from './server.ts';

/** Calls under way at the same time, each on a connection of its own. */
const MAX_CALLS = 2;

/** A statement that takes several commands. */
export interface Statement<Command, Reply> {
  /** Its parameters: those of the commands, then the time, the milliseconds that are left, and `further`. */
  readonly text: string;
  readonly valuesOf: (commands: readonly Command[]) => readonly string[];
  readonly further?: readonly string[] | undefined;
  /**
   * Reads the reply about each command.
   * @throws TypeError for anything that the function cannot return
   */
  readonly read: (row: Row | undefined, commands: number) => readonly Reply[];
}

/** A command that waits for a call. */
interface Pending<Command, Reply> extends QueuedItem {
  readonly command: Command;
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

/** Sends commands to a function of PostgreSQL, those that wait at the same time together. They may touch the same rows. */
export class BatchedStatement<Command, Reply> {
  readonly #server: Server;
  readonly #statement: Statement<Command, Reply>;
  readonly #queue: CallQueue<Pending<Command, Reply>>;

  constructor(server: Server, statement: Statement<Command, Reply>) {
    this.#server = server;
    this.#statement = statement;
    this.#queue = new CallQueue({
      maxCalls: MAX_CALLS,
      maxWaitMs: server.maxWaitMs,
      sharesRows: true,
      send: (pending) => this.#send(pending),
      giveUp: (pending) => rejectAll(pending, server.tooLate()),
    });
  }

  /**
   * Runs a command as a traced call.
   * @param keys names of the rows that it touches
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  run(operation: string, keys: readonly string[], command: Command): Promise<Reply> {
    return traceCall(
      'limits',
      operation,
      this.#server.breaker,
      () =>
        new Promise((resolve, reject) =>
          this.#queue.add({ keys, addedAt: monotonicClock.now(), command, resolve, reject }),
        ),
    );
  }

  async #send(pending: readonly Pending<Command, Reply>[]): Promise<void> {
    const server = this.#server;
    const { text, valuesOf, further = [], read } = this.#statement;
    const left = server.timeLeft((pending[0] as Pending<Command, Reply>).addedAt);
    const values = [...valuesOf(pending.map(({ command }) => command)), server.now(), String(left), ...further];
    try {
      const replies = await server.query(text, values, left, ([row]) => read(row, pending.length));
      for (const [i, { resolve }] of pending.entries()) resolve(replies[i] as Reply);
    } catch (error) {
      rejectAll(pending, error);
    }
  }
}

function rejectAll(pending: readonly Pick<Pending<never, never>, 'reject'>[], error: unknown): void {
  for (const { reject } of pending) reject(error);
}
