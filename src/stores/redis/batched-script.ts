import { StoreUnavailableError } from '../../base/errors.ts';
import { CommandBatcher, type PendingCommand } from '../shared/command-batcher.ts';
import { traceCall } from '../shared/store-tracer.ts';
import type { LimitStoreParts } from './check-calls.ts';
import { foreignRecord, isSlotMoving } from './errors.ts';
import { type Script, scriptTime } from './script.ts';

/** A command for a script that takes several: its keys, and its part of the list in ARGV[2]. */
export interface ScriptCommand {
  readonly account: string;
  readonly keys: readonly string[];
  readonly fields: readonly unknown[];
}

/** A command that is not sent yet. */
interface Pending<Reply> extends PendingCommand {
  readonly account: string;
  readonly keys: readonly string[];
  readonly json: string;
  /** Called with its part of the reply. */
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

/** Sends commands to a script, those of one turn of the event loop together. */
export class BatchedScript<Reply> {
  readonly #parts: LimitStoreParts;
  readonly #script: Script;
  readonly #read: (reply: unknown, commands: number) => readonly Reply[];
  readonly #batcher: CommandBatcher<Pending<Reply>>;

  /**
   * @param script its ARGV[1] is the time, its ARGV[2] a list in JSON with the fields of each command
   * @param read reads the reply of so many commands
   */
  constructor(parts: LimitStoreParts, script: Script, read: (reply: unknown, commands: number) => readonly Reply[]) {
    this.#parts = parts;
    this.#script = script;
    this.#read = read;
    const { isCluster, isOverHttp } = parts.commands;
    this.#batcher = new CommandBatcher({
      // On Workers, a request must not wait for the call of another request, whose end would end that call.
      oneCommandPerCall: isOverHttp === true,
      // A script in a cluster can only touch keys of one slot, and only keys of one account are sure to share a slot.
      groupOf: isCluster ? ({ account }) => account : undefined,
      send: (pending) => void this.#send(pending),
    });
  }

  /**
   * Runs a command as a traced call.
   * @param isAtOnce whether it is sent at once, by itself
   * @throws StoreTimeoutError, StoreUnavailableError
   */
  run(operation: string, { account, keys, fields }: ScriptCommand, isAtOnce = false): Promise<Reply> {
    const json = JSON.stringify(fields);
    const characters = keys.reduce((sum, key) => sum + key.length, json.length);
    return traceCall(
      'limits',
      operation,
      this.#parts.breaker,
      () =>
        new Promise<Reply>((resolve, reject) => {
          const pending = { account, keys, json, characters, resolve, reject };
          if (isAtOnce) void this.#send([pending]);
          else this.#batcher.add(pending);
        }),
    );
  }

  /** Reports a key that headgate did not write. This does not count for the circuit breaker. */
  recordFault(key: string | undefined): StoreUnavailableError {
    const error = foreignRecord(key);
    this.#parts.outages.recordFailed(error);
    return new StoreUnavailableError(error);
  }

  async #send(pending: readonly Pending<Reply>[]): Promise<void> {
    const { commands, breaker, clock } = this.#parts;
    const keys = pending.flatMap((command) => command.keys);
    const args = [scriptTime(clock), `[${pending.map(({ json }) => json).join()}]`];
    try {
      const replies = await breaker.run(async () =>
        this.#read(await this.#script.run(commands, keys, args), pending.length),
      );
      for (const [i, { resolve }] of pending.entries()) resolve(replies[i] as Reply);
    } catch (error) {
      // Each key is on one of two nodes, so that a command with one key can be executed.
      if (pending.length > 1 && isSlotMoving((error as Error).cause))
        for (const command of pending) void this.#send([command]);
      else for (const { reject } of pending) reject(error);
    }
  }
}
