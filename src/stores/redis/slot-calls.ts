import { StoreUnavailableError } from '../../base/errors.ts';
import { IN_FLIGHT_LIMITS, type SlotReply } from '../../core/slot.ts';
import { CommandBatcher, type PendingCommand } from '../shared/command-batcher.ts';
import type { SlotCommand } from '../shared/server-slots.ts';
import { traceCall } from '../shared/store-tracer.ts';
import type { LimitStoreParts } from './check-calls.ts';
import { foreignRecord, isSlotMoving } from './errors.ts';
import slotsSource from './lua/slots.lua';
import { readSlotReplies } from './reply.ts';
import { createScript, scriptTime } from './script.ts';

const slotsScript = /* @__PURE__ */ createScript(slotsSource);

/** A command that is not sent yet. */
interface Pending extends PendingCommand {
  readonly account: string;
  readonly keys: readonly string[];
  /** Its part of ARGV[2] of `slots.lua`. */
  readonly json: string;
  /** Called with its part of the reply. */
  resolve(reply: string): void;
  reject(error: unknown): void;
}

/** Sends commands about slots to Redis. Those of one turn of the event loop are sent together, such as renewals. */
export class SlotCalls {
  readonly #parts: LimitStoreParts;
  readonly #batcher: CommandBatcher<Pending>;

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
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
   * Takes, renews or releases a slot.
   * @throws StoreTimeoutError, StoreUnavailableError
   */
  readonly run = async ({ slot, leaseMs }: SlotCommand): Promise<SlotReply> => {
    const { breaker, names } = this.#parts;
    const { account, route, token, most } = slot;
    const limits = IN_FLIGHT_LIMITS.filter((limit) => most[limit] !== undefined);
    const keys = limits.map((limit) => names.slots(account, limit === 'route' ? route : undefined));
    const json = JSON.stringify([leaseMs, token, ...limits.map((limit) => most[limit])]);
    const characters = keys.reduce((sum, key) => sum + key.length, json.length);
    const reply = await traceCall(
      'limits',
      leaseMs === 0 ? 'release_slot' : 'hold_slot',
      breaker,
      () =>
        new Promise<string>((resolve, reject) =>
          this.#batcher.add({ account, keys, json, characters, resolve, reject }),
        ),
    );
    if (reply.startsWith('-')) throw this.#recordFault(keys[Number(reply.slice(1)) - 1]);
    const [held, ...counts] = reply.split(':').map(Number);
    return { held: held === 1, running: Object.fromEntries(limits.map((limit, i) => [limit, counts[i]])) };
  };

  async #send(pending: readonly Pending[]): Promise<void> {
    const { commands, breaker, clock } = this.#parts;
    const keys = pending.flatMap((command) => command.keys);
    const args = [scriptTime(clock), `[${pending.map(({ json }) => json).join()}]`];
    try {
      const replies = await breaker.run(async () =>
        readSlotReplies(await slotsScript.run(commands, keys, args), pending.length),
      );
      for (const [i, { resolve }] of pending.entries()) resolve(replies[i] as string);
    } catch (error) {
      // Each set is on one of two nodes, so that a command with one key can be executed.
      if (pending.length > 1 && isSlotMoving((error as Error).cause))
        for (const command of pending) void this.#send([command]);
      else for (const { reject } of pending) reject(error);
    }
  }

  /** Reports a key that headgate did not write. This does not count for the circuit breaker. */
  #recordFault(key: string | undefined): StoreUnavailableError {
    const error = foreignRecord(key);
    this.#parts.outages.recordFailed(error);
    return new StoreUnavailableError(error);
  }
}
