import { randomUUID } from 'node:crypto';
import type { Rooms } from '../../src/rooms.ts';

/**
 * Adds a row of the journal whose outcome is unknown: its process died while the provider was asked. Returns its id.
 */
export async function unknownEmail(
  { rooms: { sends } }: { readonly rooms: Pick<Rooms, 'sends'> },
  applicationId: string,
  accountId: string,
  idempotencyKey: string | null = null,
): Promise<string> {
  const owner = randomUUID();
  const send = {
    ...{ applicationId, accountId, idempotencyKey, fingerprint: 'f', label: null },
    messageId: `<${randomUUID()}@example.com>`,
    content: { to: ['ann@example.com'], subject: 'Hi', references: [] },
  };
  const taken = await sends.take(send, { owner, instanceId: randomUUID() });
  const id = taken?.id ?? '';
  await sends.dispatch(applicationId, id, owner, null);
  await sends.unknown(applicationId, id, owner);
  return id;
}
