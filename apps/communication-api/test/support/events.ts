import { pino } from 'pino';
import type { Database } from '../../src/db/database.ts';
import type { Clock } from '../../src/domain/clock.ts';
import { Queue } from '../../src/jobs/queue.ts';
import type { Envelope } from '../../src/security/envelope.ts';
import { Endpoints } from '../../src/webhooks/endpoints.ts';
import { Events } from '../../src/webhooks/events.ts';

/** The events of a database, for stores that are tested without a service. Nothing delivers them. */
export function eventsOf(db: Database, envelope: Envelope, clock: Clock): Events {
  const queue = new Queue(db, clock, pino({ level: 'silent' }));
  return new Events(db, clock, new Endpoints(db, envelope, clock, queue), queue);
}
