import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { EventRow } from '../db/tables.ts';
import type { EventType } from '../domain/event-types.ts';
import { isId } from '../domain/ids.ts';

/** A stored event. */
export type Event = Selectable<Omit<EventRow, 'type'>> & { readonly type: EventType };

/** An event of an application, if it still exists. */
export async function findEvent(applicationId: string, id: string, db: Database): Promise<Event | undefined> {
  if (!isId(id, 'evt')) return undefined;
  const row = await db
    .selectFrom('events')
    .selectAll()
    .where('application_id', '=', applicationId)
    .where('id', '=', id)
    .executeTakeFirst();
  return row as Event | undefined;
}
