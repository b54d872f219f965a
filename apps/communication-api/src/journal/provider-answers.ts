import { isMessageId } from '../domain/message-id.ts';
import type { SentIds } from '../providers/provider.ts';

/** Exchange's ids are up to 600 characters long. */
const MAX_ID = 1_000;
const MAX_REJECTED = 1_000;

/** Makes a provider's answer storable. The email is out: an id that the database cannot store must not hide this. */
export function storableIds(ids: SentIds): SentIds {
  const { providerId, immutableId, thread, messageId, rejected } = (ids ?? {}) as Partial<SentIds>;
  return {
    providerId: idOf(providerId),
    immutableId: idOf(immutableId),
    thread: idOf(thread),
    ...(isMessageId(messageId) ? { messageId } : {}),
    rejected: Array.isArray(rejected) ? rejected.filter((each) => idOf(each) !== null).slice(0, MAX_REJECTED) : [],
  };
}

const idOf = (value: unknown): string | null =>
  typeof value === 'string' && value.length <= MAX_ID && /^[^\p{Cc}\p{Surrogate}]+$/u.test(value) ? value : null;
