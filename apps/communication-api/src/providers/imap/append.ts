import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ImapFlow } from 'imapflow';
import { canUseFlag, encodePath, formatDateTime } from 'imapflow/lib/tools.js';
import type { CopyMessage } from '../provider.ts';

/** The members of imapflow that make its own commands. Its types do not show them, so a new version may change them. */
interface Commands {
  readonly writeSocket: Writable;
  exec(
    command: string,
    attributes: readonly (Attribute | readonly Attribute[])[],
    options: { onPlusTag(): Promise<void> },
  ): Promise<{ next(): void }>;
}

interface Attribute {
  readonly type: 'ATOM' | 'STRING' | 'TEXT';
  readonly value: string | undefined;
}

const SEEN = '\\Seen';

/**
 * Files a message as a read one, in the folder that is open. The message is streamed: imapflow's own `append` needs it
 * in memory three times.
 * @param date when it was sent
 */
export async function append(client: ImapFlow, folder: string, { size, open }: CopyMessage, date: Date): Promise<void> {
  const commands = client as unknown as Commands;
  let failure: unknown;
  const attributes: Parameters<Commands['exec']>[1] = [
    { type: 'ATOM', value: encodePath(client, folder) },
    canUseFlag(client.mailbox, SEEN) ? [{ type: 'ATOM', value: SEEN }] : [],
    { type: 'STRING', value: formatDateTime(date) },
    // The server answers with `+`, or with NO if it does not want the message.
    { type: 'TEXT', value: `{${size}}` },
  ];
  const onPlusTag = async (): Promise<void> => {
    const message = exactly(size, open, (error) => {
      failure = error;
    });
    // A message that is cut short must not be filed: without the rest, the server drops it.
    await pipeline(message, commands.writeSocket, { end: false }).catch(() => client.close());
  };
  try {
    const response = await commands.exec('APPEND', attributes, { onPlusTag });
    response.next();
  } catch (error) {
    throw failure ?? error;
  }
}

/** A message and the end of its command. @param onError called if the message cannot be read, or its size changed */
async function* exactly(size: number, open: () => Readable, onError: (error: unknown) => void) {
  try {
    let at = 0;
    for await (const chunk of open() as AsyncIterable<Uint8Array>) {
      at += chunk.length;
      if (at > size) break;
      yield chunk;
    }
    if (at !== size) throw new Error('The size of the message changed.');
  } catch (error) {
    onError(error);
    throw error;
  }
  yield Buffer.from('\r\n');
}
