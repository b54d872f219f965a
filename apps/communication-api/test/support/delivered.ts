import { type ParsedMail, simpleParser } from 'mailparser';
import type { Database } from '../../src/db/database.ts';

/** The email that the mock provider delivered for a `tracking_id`, as a recipient reads it. */
export async function deliveredEmail(db: Database, trackingId: string): Promise<ParsedMail> {
  const { raw } = await db
    .selectFrom('mock_messages')
    .innerJoin('sends', 'sends.message_id', 'mock_messages.message_id')
    .select('mock_messages.raw')
    .where('sends.id', '=', trackingId)
    .executeTakeFirstOrThrow();
  return simpleParser(Buffer.from(raw));
}

/** Names, types and texts of the files of an email. */
export const filesOf = ({ attachments }: ParsedMail): readonly object[] =>
  attachments.map(({ filename, contentType, content }) => ({ filename, contentType, text: content.toString() }));
