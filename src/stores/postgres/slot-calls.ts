import { monotonicClock } from '../../core/clock.ts';
import type { SlotReply } from '../../core/slot.ts';
import type { SlotCommand } from '../shared/server-slots.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { CallQueue, type QueuedItem } from './call-queue.ts';
import type { Row } from './database.ts';
import { arrayOf, digest } from './names.ts';
import type { Server } from './server.ts';

const SLOTS = `select headgate.slots_1($1::text::uuid[], $2::text::uuid[], $3::text::text[], $4::text::bigint[],
  $5::text::integer[], $6::text::integer[], $7::text::bigint, $8::text::bigint) as slots`;

/** Calls under way at the same time, each on a connection of its own. */
const MAX_CALLS = 2;
/** For each command '1' if its slot is held, or '0', then the slots of its route and of its account. */
const REPLY = /^([01]):(\d{0,15}):(\d{0,15})$/;

/** A command that waits for a call. */
interface Pending extends QueuedItem, SlotCommand {
  resolve(reply: SlotReply): void;
  reject(error: unknown): void;
}

/** Sends commands about slots to PostgreSQL, those that wait at the same time together. */
export class SlotCalls {
  readonly #server: Server;
  readonly #queue: CallQueue<Pending>;

  constructor(server: Server) {
    this.#server = server;
    this.#queue = new CallQueue({
      maxCalls: MAX_CALLS,
      maxWaitMs: server.maxWaitMs,
      sharesRows: true,
      send: (commands) => this.#send(commands),
      giveUp: (commands) => rejectAll(commands, server.tooLate()),
    });
  }

  /**
   * Takes, renews or releases a slot.
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  readonly run = ({ slot, leaseMs }: SlotCommand): Promise<SlotReply> => {
    const operation = leaseMs === 0 ? 'release_slot' : 'hold_slot';
    const keys = [digest(slot.account)];
    return traceCall(
      'limits',
      operation,
      this.#server.breaker,
      () =>
        new Promise((resolve, reject) =>
          this.#queue.add({ keys, addedAt: monotonicClock.now(), slot, leaseMs, resolve, reject }),
        ),
    );
  };

  async #send(commands: readonly Pending[]): Promise<void> {
    const server = this.#server;
    const left = server.timeLeft((commands[0] as Pending).addedAt);
    const values = [...valuesOf(commands), server.now(), String(left)];
    try {
      const replies = await server.query(SLOTS, values, left, ([row]) => readReplies(row, commands.length));
      for (const [i, { resolve }] of commands.entries()) resolve(replies[i] as SlotReply);
    } catch (error) {
      rejectAll(commands, error);
    }
  }
}

function rejectAll(commands: readonly Pending[], error: unknown): void {
  for (const { reject } of commands) reject(error);
}

function valuesOf(commands: readonly Pending[]): string[] {
  const columns = [
    commands.map(({ slot }) => digest(slot.account)),
    commands.map(({ slot }) => digest(slot.route)),
    commands.map(({ slot }) => slot.token),
    commands.map(({ leaseMs }) => leaseMs),
    commands.map(({ slot }) => slot.most.route ?? 'null'),
    commands.map(({ slot }) => slot.most.allMethods ?? 'null'),
  ];
  return columns.map(arrayOf);
}

/** @throws TypeError for anything that the function cannot return */
function readReplies(row: Row | undefined, commands: number): readonly SlotReply[] {
  const replies = String(row?.slots ?? '').split(',');
  const read = replies.flatMap((reply) => readReply(reply) ?? []);
  if (read.length === commands) return read;
  throw new TypeError(`unexpected reply of PostgreSQL: ${JSON.stringify(row?.slots)?.slice(0, 200)}`);
}

function readReply(reply: string): SlotReply | undefined {
  const [, held, ofRoute, all] = REPLY.exec(reply) ?? [];
  if (held === undefined) return undefined;
  const running = { ...(ofRoute && { route: Number(ofRoute) }), ...(all && { allMethods: Number(all) }) };
  return { held: held === '1', running };
}
