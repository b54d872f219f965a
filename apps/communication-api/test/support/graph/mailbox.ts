import { randomBytes } from 'node:crypto';
import type * as Graph from '@microsoft/microsoft-graph-types';

/** An email that a mailbox sent, as its recipients get it. */
export interface Delivery {
  readonly from: string;
  readonly recipients: readonly string[];
  /** The message in MIME form that the draft was made from. */
  readonly mime: string;
  readonly headers: ReadonlyMap<string, string>;
  /** Files that were added to the draft afterwards. */
  readonly attached: readonly AttachedFile[];
}

export interface AttachedFile {
  readonly name: string;
  readonly contentType: string;
  /** The text of the message shows the file by this name. */
  readonly contentId: string | undefined;
  readonly content: Buffer;
}

type Place = 'drafts' | 'outbox' | 'sentitems' | 'inbox';

/** A message in a mailbox. */
export class Item {
  id = newId('AAkALg');
  /** It names the place of the message, so it changes when the message moves. */
  restId = newId('AAMkAD');
  folder: Place = 'drafts';
  isDraft = true;
  readonly attached: AttachedFile[] = [];
  readonly headers: ReadonlyMap<string, string>;
  /** How often Graph showed it as a draft, without a request to send it afterwards. */
  shownAsDraft = 0;
  /** How often it is asked for before it can be seen. */
  hiddenFor = 0;
  #version = 1;
  #changes: Graph.Message = {};

  constructor(
    readonly mailbox: Mailbox,
    readonly mime: Buffer,
    readonly conversationId: string,
  ) {
    this.headers = headersOf(mime);
  }

  get messageId(): string {
    return this.headers.get('message-id') ?? '';
  }

  get etag(): string {
    return `W/"CQ${this.#version}"`;
  }

  /** Graph ignores `From` of a message in MIME form. */
  get from(): string {
    return this.#changes.from?.emailAddress?.address ?? this.mailbox.address;
  }

  get recipients(): readonly string[] {
    return ['to', 'cc', 'bcc'].flatMap((name) => addressesOf(this.headers.get(name)));
  }

  change(changes: Graph.Message): void {
    this.#version++;
    this.#changes = { ...this.#changes, ...changes };
  }

  attach(
    { name, contentType, isInline = false, contentId }: Graph.FileAttachment | Graph.AttachmentItem,
    content: Buffer,
  ): Graph.FileAttachment {
    this.#version++;
    const shownBy = isInline === true ? (contentId ?? undefined) : undefined;
    this.attached.push({ name: name ?? '', contentType: contentType ?? '', contentId: shownBy, content });
    return {
      '@odata.type': '#microsoft.graph.fileAttachment',
      ...{ id: newId('AAMkAT'), name, contentType, size: content.length, isInline },
    } as Graph.FileAttachment;
  }

  /** It leaves the drafts. */
  move(folder: Place): void {
    this.#version++;
    this.folder = folder;
    this.isDraft = false;
    this.restId = newId('AAMkAS');
  }

  shown(): Graph.Message {
    const list = (name: string) =>
      addressesOf(this.headers.get(name)).map((address) => ({ emailAddress: { address, name: address } }));
    return {
      '@odata.etag': this.etag,
      id: this.id,
      changeKey: `CQ${this.#version}`,
      parentFolderId: this.mailbox.folder(this.folder),
      conversationId: this.conversationId,
      internetMessageId: this.messageId,
      isDraft: this.isDraft,
      subject: this.headers.get('subject') ?? '',
      from: { emailAddress: { address: this.from, name: this.from } },
      toRecipients: list('to'),
      ccRecipients: list('cc'),
      bccRecipients: list('bcc'),
      hasAttachments: this.attached.length > 0,
      body: { contentType: 'text', content: '' },
      // Only received messages contain them.
      ...(this.folder === 'inbox'
        ? { internetMessageHeaders: [...this.headers].map(([name, value]) => ({ name, value })) }
        : {}),
    } as Graph.Message;
  }
}

/** A mailbox of the double. */
export class Mailbox {
  /** The permissions that its owner gave. */
  readonly permissions = new Set(['Mail.ReadWrite', 'Mail.Send']);
  /** Access tokens that work. */
  readonly tokens = new Set<string>();
  /** Other addresses that it may send as. */
  readonly sendAs = new Set<string>();
  readonly delivered: Delivery[] = [];
  /** How often a sent email is asked for before Graph shows it. `never`: it is not shown at all. */
  sentCopyAfter: number | 'never' = 0;
  /** Microsoft's reference contradicts itself: a draft may get another id when it is sent. */
  keepsIds = true;
  readonly #items: Item[] = [];
  readonly #folders = new Map<string, string>();

  constructor(readonly address: string) {}

  get drafts(): readonly Item[] {
    return this.#items.filter(({ isDraft }) => isDraft);
  }

  /** No access token works any more. */
  expireTokens(): void {
    this.tokens.clear();
  }

  /** The id of a folder. The well-known names are lower case. */
  folder(name: string): string {
    const id = this.#folders.get(name) ?? newId('AAMkAF');
    this.#folders.set(name, id);
    return id;
  }

  create(mime: Buffer): Item {
    const headers = headersOf(mime);
    const parents = `${headers.get('in-reply-to')} ${headers.get('references')}`;
    const parent = this.#items.find(({ messageId }) => messageId !== '' && parents.includes(messageId));
    const item = new Item(this, mime, parent?.conversationId ?? newId('AAQkAD'));
    this.#items.push(item);
    return item;
  }

  /** An email that was sent to this mailbox. */
  receive(mime: string): Item {
    const item = this.create(Buffer.from(mime.replaceAll('\n', '\r\n')));
    item.move('inbox');
    return item;
  }

  find(id: string): Item | undefined {
    return this.#items.find((item) => (item.id === id || item.restId === id) && isShown(item));
  }

  list(folder: string): readonly Item[] {
    return this.#items.filter((item) => item.folder === folder && isShown(item));
  }

  delete(item: Item): void {
    this.#items.splice(this.#items.indexOf(item), 1);
  }

  /** Sends a draft. Returns the code of Graph's error if it refuses. */
  send(item: Item): string | undefined {
    const { from, recipients, headers, attached } = item;
    if (recipients.length === 0 || recipients.some((address) => address.endsWith('@invalid.test')))
      return 'ErrorInvalidRecipients';
    if (from !== this.address && !this.sendAs.has(from)) return 'ErrorSendAsDenied';
    this.delivered.push({ from, recipients, mime: item.mime.toString(), headers, attached: [...attached] });
    item.move('sentitems');
    if (!this.keepsIds) item.id = newId('AAkALg');
    item.hiddenFor = this.sentCopyAfter === 'never' ? Number.POSITIVE_INFINITY : this.sentCopyAfter;
    return undefined;
  }

  /** Graph shows all sent emails from now on. */
  showSent(): void {
    for (const item of this.#items) item.hiddenFor = 0;
  }
}

const newId = (prefix: string): string => `${prefix}${randomBytes(24).toString('base64url')}AAA=`;

const isShown = (item: Item): boolean => item.hiddenFor === 0 || --item.hiddenFor < 0;

/** The head of a message. Names are in lower case. */
function headersOf(mime: Buffer): ReadonlyMap<string, string> {
  const [head = ''] = mime.toString().split('\r\n\r\n', 1);
  return new Map(
    head
      .replace(/\r\n[ \t]+/g, ' ')
      .split('\r\n')
      .map((line) => {
        const [name = '', ...value] = line.split(': ');
        return [name.toLowerCase(), value.join(': ')];
      }),
  );
}

const addressesOf = (list = ''): readonly string[] => list.match(/[^\s<>,"]+@[^\s<>,"]+/g) ?? [];
