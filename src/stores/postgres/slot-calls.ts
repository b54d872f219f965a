import type { SlotReply } from '../../core/slot.ts';
import type { SlotCommand } from '../shared/server-slots.ts';
import { BatchedStatement } from './batched-statement.ts';
import type { Row } from './database.ts';
import { arrayOf, digest } from './names.ts';
import type { Server } from './server.ts';

const SLOTS = `select headgate.slots_1($1::text::uuid[], $2::text::uuid[], $3::text::text[], $4::text::bigint[],
  $5::text::integer[], $6::text::integer[], $7::text::bigint, $8::text::bigint) as slots`;

/** For each command '1' if its slot is held, or '0', then the slots of its route and of its account. */
const REPLY = /^([01]):(\d{0,15}):(\d{0,15})$/;

/** Sends commands about slots to PostgreSQL, those that wait at the same time together. */
export class SlotCalls {
  readonly #statement: BatchedStatement<SlotCommand, SlotReply>;

  constructor(server: Server) {
    this.#statement = new BatchedStatement(server, { text: SLOTS, valuesOf, read: readReplies });
  }

  /**
   * Takes, renews or releases a slot.
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  readonly run = (command: SlotCommand): Promise<SlotReply> =>
    this.#statement.run(command.leaseMs === 0 ? 'release_slot' : 'hold_slot', [digest(command.slot.account)], command);
}

function valuesOf(commands: readonly SlotCommand[]): string[] {
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
