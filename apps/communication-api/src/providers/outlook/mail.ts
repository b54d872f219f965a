import { setTimeout as pause } from 'node:timers/promises';
import { messageIdsIn } from '../../domain/message-id.ts';
import type { Attachment, ComposedMail } from '../../mail/mail.ts';
import type { OAuthCredentials } from '../oauth/credentials.ts';
import {
  type MailAccount,
  type MailProvider,
  type Parent,
  ProviderError,
  type SendTrace,
  type SentIds,
} from '../provider.ts';
import { outlookError } from './errors.ts';
import { type Graph, GraphError, type GraphMessage, messagePath } from './graph.ts';
import { may } from './permissions.ts';

/** The stored facts about a draft. */
interface OutlookDraft {
  /** The immutable id. */
  readonly id: string;
  /** The id of the folder of the draft. */
  readonly folder: string;
  readonly messageId: string;
}

/** Bytes of a message in MIME form. Graph takes 4 MB per request, and base64 makes a third more of it. */
const MAX_MIME = 3_000_000;
/** Bytes of a file that is added to a draft in one request. Graph takes a larger file in pieces only. */
const MAX_WHOLE_FILE = 3 * 1024 * 1024;
/** Bytes of a piece. Graph wants a multiple of 320 KiB, of 4 MB at most. */
const PIECE = 10 * 320 * 1024;
/** How long to wait before each look for a sent email, in milliseconds. */
const LOOKS_MS = [0, 200, 400, 800, 1_600];
/** How long a draft that failed may take to be deleted. */
const TIDY_MS = 10_000;
/** The form of Exchange's ids. */
const ID = /^[\w=-]{20,600}$/;
const SHOWN = ['id', 'isDraft', 'parentFolderId', 'internetMessageId', 'conversationId'] as const;
const NOT_SHOWN: SentIds = { providerId: null, immutableId: null, thread: null, rejected: [] };

/**
 * Sends by Microsoft Graph: a draft is made from the whole message in MIME form, and then sent. Files for which a
 * request is too small are added to the draft one by one.
 */
export class OutlookMailProvider implements MailProvider {
  /** @param looksMs how long to wait before each look for a sent email */
  constructor(
    private readonly graph: Graph,
    private readonly looksMs: readonly number[] = LOOKS_MS,
  ) {}

  isFenced({ credentials }: MailAccount): boolean {
    return may(credentials as OAuthCredentials, 'Mail.ReadWrite');
  }

  async draft(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<string> {
    const whole = await mimeOf(mail);
    const mime = whole ?? (await mimeOf(mail, { withoutAttachments: true }));
    if (mime === undefined) throw tooLarge('The text of the email is larger than Outlook takes (about 3 MB).');
    let made: GraphMessage | undefined;
    try {
      made = await this.graph.ask<GraphMessage>(
        account,
        { method: 'POST', path: '/me/messages', body: { mime } },
        signal,
      );
      const { id, parentFolderId: folder, internetMessageId: messageId } = made;
      if (typeof id !== 'string' || typeof folder !== 'string') throw new Error('Graph made a draft without an id.');
      if (whole === undefined) for (const each of mail.attachments) await this.#attach(id, each, account, signal);
      await this.#setSender(id, mail, account, signal);
      return JSON.stringify({ id, folder, messageId: messageId ?? mail.messageId } satisfies OutlookDraft);
    } catch (error) {
      if (typeof made?.id === 'string') await this.#tidy(made.id, account);
      throw outlookError(error);
    }
  }

  async discard(draft: string, account: MailAccount, signal: AbortSignal): Promise<boolean> {
    const { id, folder } = draftOf(draft);
    try {
      const stored = await this.graph.message(account, id, SHOWN, signal);
      if (stored === undefined || !isUnsent(stored, folder)) return false;
      // The sent email takes over the id of the draft, and must not be deleted: so only this version is.
      const etag = stored['@odata.etag'];
      const headers = etag === undefined ? {} : { 'if-match': etag };
      await this.graph.ask(account, { method: 'DELETE', path: messagePath(id), headers }, signal);
      return true;
    } catch (error) {
      if (error instanceof GraphError && [404, 412].includes(error.status)) return false;
      throw outlookError(error);
    }
  }

  async sendDraft(text: string, account: MailAccount, signal: AbortSignal): Promise<SentIds | undefined> {
    const draft = draftOf(text);
    try {
      // The effect of a second request to send a draft is not documented, so there must be none.
      const stored = await this.graph.message(account, draft.id, SHOWN, signal);
      if (stored === undefined || !isUnsent(stored, draft.folder)) return undefined;
    } catch (error) {
      throw outlookError(error);
    }
    try {
      await this.graph.ask(account, { method: 'POST', path: `${messagePath(draft.id)}/send` }, signal);
    } catch (error) {
      if (error instanceof GraphError && error.status === 404) return undefined;
      throw outlookError(error, true);
    }
    return this.#lookForSent(draft, account, signal);
  }

  async send(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<SentIds> {
    const mime = await mimeOf(mail);
    if (mime === undefined)
      throw tooLarge(
        'The email is larger than Outlook takes in one request. Drafts have no such limit (OUTLOOK_SCOPES).',
      );
    // Graph takes the sender of a message in MIME form from the mailbox, and would not say so.
    if (!isOwn(mail, account))
      throw new ProviderError(
        'no',
        422,
        'errors/send_as_denied',
        'Without drafts, the sender cannot be chosen (OUTLOOK_SCOPES).',
      );
    try {
      await this.graph.ask(account, { method: 'POST', path: '/me/sendMail', body: { mime } }, signal);
    } catch (error) {
      throw outlookError(error, true);
    }
    // The permission to send does not allow reading sent emails.
    return NOT_SHOWN;
  }

  async find({ draft }: SendTrace, account: MailAccount, signal: AbortSignal): Promise<SentIds | undefined> {
    if (draft === null) return undefined;
    try {
      return await this.#sentCopy(draftOf(draft), account, signal);
    } catch (error) {
      throw outlookError(error);
    }
  }

  async parent(providerId: string, account: MailAccount, signal: AbortSignal): Promise<Parent | undefined> {
    if (!ID.test(providerId)) throw wrongId();
    if (!this.isFenced(account)) return undefined;
    try {
      const properties = ['internetMessageId', 'conversationId', 'subject', 'internetMessageHeaders'] as const;
      const found = await this.graph.message(account, providerId, properties, signal);
      if (found === undefined || typeof found.internetMessageId !== 'string') return undefined;
      return {
        messageId: found.internetMessageId,
        references: referencesOf(found),
        subject: found.subject ?? undefined,
        thread: found.conversationId ?? undefined,
      };
    } catch (error) {
      if (error instanceof GraphError && error.code === 'ErrorInvalidIdMalformed') throw wrongId();
      throw outlookError(error);
    }
  }

  async #attach(
    id: string,
    { filename: name, contentType, contentId, file }: Attachment,
    account: MailAccount,
    signal: AbortSignal,
  ) {
    const path = `${messagePath(id)}/attachments`;
    const described = { name, contentType, ...(contentId === undefined ? {} : { isInline: true, contentId }) };
    if (file.size < MAX_WHOLE_FILE) {
      const contentBytes = Buffer.concat(await file.open().toArray()).toString('base64');
      const json = { '@odata.type': '#microsoft.graph.fileAttachment', ...described, contentBytes };
      await this.graph.ask(account, { method: 'POST', path, body: { json } }, signal);
      return;
    }
    const json = { AttachmentItem: { attachmentType: 'file', ...described, size: file.size } };
    const request = { method: 'POST', path: `${path}/createUploadSession`, body: { json } } as const;
    const { uploadUrl } = await this.graph.ask<{ readonly uploadUrl?: unknown }>(account, request, signal);
    if (typeof uploadUrl !== 'string') throw new Error('Graph names no address for a file.');
    let start = 0;
    for await (const bytes of piecesOf(file.open())) {
      await this.graph.upload(account, uploadUrl, { bytes, start, size: file.size }, signal);
      start += bytes.length;
    }
  }

  /** Graph ignores the sender of a message in MIME form. */
  async #setSender(id: string, mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<void> {
    if (isOwn(mail, account)) return;
    const { name, address } = mail.from;
    const json = { from: { emailAddress: { address, ...(name === undefined ? {} : { name }) } } };
    await this.graph.ask(account, { method: 'PATCH', path: messagePath(id), body: { json } }, signal);
  }

  /** A draft that stays behind is untidy. It must not hide the error that it stays behind for. */
  async #tidy(id: string, account: MailAccount): Promise<void> {
    const request = { method: 'DELETE', path: messagePath(id) } as const;
    await this.graph.ask(account, request, AbortSignal.timeout(TIDY_MS)).catch(() => undefined);
  }

  /** The email is out, and no error may hide that. If Graph does not show it soon, the sweeper finds its ids later. */
  async #lookForSent(draft: OutlookDraft, account: MailAccount, signal: AbortSignal): Promise<SentIds> {
    for (const [look, ms] of this.looksMs.entries()) {
      try {
        await pause(ms, undefined, { signal });
        const found = await this.#sentCopy(draft, account, signal, look > 0);
        if (found !== undefined) return found;
      } catch (error) {
        // The deadline is over, or there is no access token any more.
        if (signal.aborted || error instanceof ProviderError) break;
      }
    }
    return NOT_SHOWN;
  }

  /** The sent email. As a rule, it takes over the id of the draft: Microsoft's reference names exceptions. */
  async #sentCopy(draft: OutlookDraft, account: MailAccount, signal: AbortSignal, searches = true) {
    let sent = await this.graph.message(account, draft.id, SHOWN, signal);
    if (sent?.isDraft === true) return undefined;
    if (sent === undefined && searches) sent = await this.#search(draft.messageId, account, signal);
    return sent === undefined ? undefined : this.#idsOf(sent, account, signal);
  }

  async #search(messageId: string, account: MailAccount, signal: AbortSignal): Promise<GraphMessage | undefined> {
    // Not URLSearchParams: Microsoft does not say whether a plus sign is a space.
    const filter = encodeURIComponent(`internetMessageId eq '${messageId.replaceAll("'", "''")}'`);
    const query = `$filter=${filter}&$select=${SHOWN}&$top=1`;
    const request = { method: 'GET', path: `/me/mailFolders/sentitems/messages?${query}` } as const;
    const { value } = await this.graph.ask<{ readonly value?: readonly GraphMessage[] }>(account, request, signal);
    return value?.[0];
  }

  async #idsOf(sent: GraphMessage, account: MailAccount, signal: AbortSignal): Promise<SentIds> {
    const { id = null, conversationId: thread, internetMessageId: messageId } = sent;
    return {
      providerId: id === null ? null : await this.#mutableId(id, account, signal),
      immutableId: id ?? null,
      thread: thread ?? null,
      ...(messageId == null ? {} : { messageId }),
      rejected: [],
    };
  }

  /** The id that Graph uses without the header `Prefer`. It changes when the email moves to another folder. */
  async #mutableId(id: string, account: MailAccount, signal: AbortSignal): Promise<string | null> {
    const json = { InputIds: [id], SourceIdType: 'restImmutableEntryId', TargetIdType: 'restId' };
    const request = { method: 'POST', path: '/me/translateExchangeIds', body: { json } } as const;
    type Translation = { readonly value?: readonly { readonly targetId?: string | null }[] };
    const answer = await this.graph.ask<Translation>(account, request, signal).catch(() => undefined);
    return answer?.value?.[0]?.targetId ?? null;
  }
}

/** Base64 of the message in MIME form; undefined if it is larger than Graph takes. */
async function mimeOf(
  mail: ComposedMail,
  options: { readonly withoutAttachments?: boolean } = {},
): Promise<string | undefined> {
  const files = options.withoutAttachments ? [] : mail.attachments;
  // They need not be read to know it.
  if (files.reduce((sum, { file }) => sum + file.size, 0) > MAX_MIME) return undefined;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of mail.open({ keepBcc: true, ...options }) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_MIME) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('base64');
}

/** Pieces of a stream of the size that Graph wants, except the last piece. */
async function* piecesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let piece = new Uint8Array(PIECE);
  let filled = 0;
  for await (const chunk of source) {
    for (let rest = chunk; rest.length > 0; ) {
      const taken = rest.subarray(0, PIECE - filled);
      piece.set(taken, filled);
      filled += taken.length;
      rest = rest.subarray(taken.length);
      if (filled < PIECE) continue;
      yield piece;
      piece = new Uint8Array(PIECE);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}

/** Whether a draft was not handed over yet. One that left its folder may be on its way out. */
const isUnsent = ({ isDraft, parentFolderId }: GraphMessage, folder: string): boolean =>
  isDraft === true && parentFolderId === folder;

const isOwn = ({ from }: ComposedMail, { address }: MailAccount): boolean =>
  from.address.toLowerCase() === address.toLowerCase();

const draftOf = (text: string): OutlookDraft => JSON.parse(text) as OutlookDraft;

function referencesOf({ internetMessageHeaders }: GraphMessage): readonly string[] {
  const header = internetMessageHeaders?.find(({ name }) => name?.toLowerCase() === 'references');
  return messageIdsIn(header?.value ?? '');
}

const tooLarge = (detail: string): ProviderError => new ProviderError('no', 422, 'errors/limit_exceeded', detail);

const wrongId = (): ProviderError =>
  new ProviderError(
    'no',
    422,
    'errors/parent_mail_invalid_provider_id',
    'reply_to: not an id of Outlook. Use a tracking_id, or the id of a message of Microsoft Graph.',
  );
