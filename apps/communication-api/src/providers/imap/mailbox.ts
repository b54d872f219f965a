import type { ImapFlow, ListResponse } from 'imapflow';
import { messageIdsIn } from '../../domain/message-id.ts';
import type { Parent } from '../provider.ts';

/** Folders that are searched for a parent: more would keep the client waiting. */
const MAX_FOLDERS = 50;
/** The folder with everything, if there is one, and those that the most answered emails are in. */
const FIRST: readonly (string | undefined)[] = ['\\All', '\\Inbox', '\\Sent', '\\Archive'];
/** Emails in these folders are not part of a conversation. */
const NEVER: readonly (string | undefined)[] = ['\\Drafts', '\\Junk', '\\Trash'];

/** Folders for sent emails, as long as their connections live: to list all folders takes time. */
const sentFolders = new WeakMap<ImapFlow, string>();

/** The path of the folder for sent emails: the server's own mark, else its usual name. */
export async function sentFolder(client: ImapFlow): Promise<string | undefined> {
  const known = sentFolders.get(client);
  if (known !== undefined) return known;
  const folders = await client.list();
  const path = folders.find(({ specialUse }) => specialUse === '\\Sent')?.path;
  if (path !== undefined) sentFolders.set(client, path);
  return path;
}

/** Whether a folder contains an email. */
export async function hasMail(client: ImapFlow, folder: string, messageId: string): Promise<boolean> {
  return (await uidOf(client, folder, messageId)) !== undefined;
}

/** Finds an email in any folder, in the likely ones first. */
export async function findParent(
  client: ImapFlow,
  messageId: string,
  signal: AbortSignal,
): Promise<Parent | undefined> {
  const folders = (await client.list()).filter(
    ({ specialUse, flags }) => !NEVER.includes(specialUse) && !flags.has('\\Noselect') && !flags.has('\\NonExistent'),
  );
  const inOrder = folders.sort((a, b) => rank(a) - rank(b)).slice(0, MAX_FOLDERS);
  for (const { path } of inOrder) {
    signal.throwIfAborted();
    const parent = await parentIn(client, path, messageId).catch((error: unknown) => {
      // The user may not read every folder.
      if (client.usable) return undefined;
      throw error;
    });
    if (parent !== undefined) return parent;
  }
  return undefined;
}

function rank({ specialUse }: ListResponse): number {
  const index = FIRST.indexOf(specialUse);
  return index === -1 ? FIRST.length : index;
}

async function uidOf(client: ImapFlow, folder: string, messageId: string): Promise<number | undefined> {
  // In a folder that was opened for reading only, no flags could be set by the APPEND that may follow.
  const lock = await client.getMailboxLock(folder);
  try {
    return await searchSelected(client, messageId);
  } finally {
    lock.release();
  }
}

/** A folder that was open already knows of new emails: a connection that was idle is asked whether it works by NOOP. */
async function searchSelected(client: ImapFlow, messageId: string): Promise<number | undefined> {
  const uids = await client.search({ header: { 'message-id': messageId } }, { uid: true });
  // A search that the server refuses must not look as if the email did not exist.
  if (!Array.isArray(uids)) throw new Error('The IMAP server refused to search.');
  return uids.at(-1);
}

async function parentIn(client: ImapFlow, folder: string, messageId: string): Promise<Parent | undefined> {
  const lock = await client.getMailboxLock(folder, { readOnly: true });
  try {
    const uid = await searchSelected(client, messageId);
    if (uid === undefined) return undefined;
    const query = { envelope: true, headers: ['references', 'in-reply-to'] };
    const message = await client.fetchOne(String(uid), query, { uid: true });
    if (!message) return undefined;
    return {
      messageId,
      references: referencesIn(message.headers?.toString('latin1') ?? ''),
      subject: message.envelope?.subject,
      thread: undefined,
    };
  } finally {
    lock.release();
  }
}

/** RFC 5322, 3.6.4: without `References`, the one id of `In-Reply-To`. */
export function referencesIn(headers: string): readonly string[] {
  const idsOf = (name: string): readonly string[] => {
    const unfolded = headers.replace(/\r?\n[ \t]+/g, ' ');
    const [, value = ''] = new RegExp(`^${name}:(.*)$`, 'im').exec(unfolded) ?? [];
    return messageIdsIn(value).filter((id) => id.includes('@'));
  };
  const references = idsOf('references');
  if (references.length > 0) return references;
  const answered = idsOf('in-reply-to');
  return answered.length === 1 ? answered : [];
}
