import type { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { SMTPEnvelope } from 'nodemailer/lib/smtp-connection';
import SMTPPool, { type SMTPPoolOptions } from 'nodemailer/lib/smtp-pool';
import type { ComposedMail } from '../../mail/mail.ts';
import type { Net } from '../../security/net.ts';
import type { MailAccount, ProviderError } from '../provider.ts';
import type { ImapCredentials } from './credentials.ts';
import { endFloods, MAX_SMTP_BYTES } from './end-floods.ts';
import { type Handover, isConnectionLost, isConnectionRefused, smtpError } from './smtp-error.ts';

const MAX_POOLS = 200;
const MAX_WORKED = 10_000;
const CONNECTIONS_PER_ACCOUNT = 5;
/** So long a pool opens no more connections than its server took. */
const CROWDED_MS = 60_000;
const IDLE_MS = 30_000;
/** For the way to the server, the greeting and TLS together. */
const CONNECT_MS = 20_000;

/** The open connections to mail servers for sending, of the accounts that were used last. */
export class SmtpPools {
  readonly #pools = new LRUCache<string, AccountPool>({ max: MAX_POOLS, dispose: (pool) => pool.retire() });
  /** The accounts that sent an email from this process. */
  readonly #worked = new LRUCache<string, true>({ max: MAX_WORKED });

  /** @returns the recipients that the server refused, while it took the email for the others. @throws ProviderError */
  async send(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<readonly string[]> {
    const rejected = await this.#of(account).send(mail, signal, this.#worked.has(account.id));
    this.#worked.set(account.id, true);
    return rejected;
  }

  /** The connections of an account. They are new if its credentials or its proxy changed. */
  #of({ id, credentials, net }: MailAccount): AccountPool {
    const known = this.#pools.get(id);
    if (known?.net === net && isDeepStrictEqual(known.credentials, credentials)) return known;
    const pool = new AccountPool(credentials as ImapCredentials, net, () => {
      // A password is not kept in memory longer than its connections.
      if (this.#pools.peek(id) === pool) this.#pools.delete(id);
    });
    this.#pools.set(id, pool);
    return pool;
  }

  /** Ends the connections that are idle. The others end with their email. */
  close(): void {
    this.#pools.clear();
  }
}

/** A message as a connection of nodemailer reads it. The addresses are checked, and their domains are ASCII. */
class OutgoingMessage {
  #stream: Readable | undefined;
  #isRead = false;

  constructor(private readonly mail: ComposedMail) {}

  getEnvelope(): SMTPEnvelope {
    const { from, recipients } = this.mail;
    return { from: from.address, to: [...recipients] };
  }

  messageId(): string {
    return this.mail.messageId;
  }

  getHeader(): undefined {
    return undefined;
  }

  /** A connection calls it before the server has agreed to the message, and reads the stream after that. */
  createReadStream(): Readable {
    const stream = this.mail.open();
    // After this, the connection writes the line that makes the server send the email.
    stream.once('end', () => {
      this.#isRead = true;
    });
    this.#stream = stream;
    return stream;
  }

  /** How much of the message was read. */
  get handover(): Handover {
    if (this.#isRead) return 'all';
    return this.#stream?.readableDidRead ? 'part' : 'none';
  }

  /** Reads no more. */
  end(): void {
    this.#stream?.destroy();
  }
}

/** The outcome of an attempt. */
type Outcome =
  | { readonly rejected: readonly string[] }
  | {
      readonly error: ProviderError;
      /** The server took no further connection, or no login, and may take another one later. */
      readonly isCrowded: boolean;
      /** The connection ended before anything of the email was read. */
      readonly isUntouched: boolean;
    };

/** The connections of one account. They log in at the first email, and end 30 seconds after the last one. */
class AccountPool {
  readonly #pool: SMTPPool;
  #pending = 0;
  #isRetired = false;
  #crowdedUntil = 0;

  /**
   * @param net their way out
   * @param onIdle called when the last connection ended
   */
  constructor(
    readonly credentials: ImapCredentials,
    readonly net: Net,
    onIdle: () => void,
  ) {
    const { host, port, encryption, user, password } = credentials.smtp;
    const isSecure = encryption === 'tls';
    const getSocket: SMTPPoolOptions['getSocket'] = (_, done) => {
      this.net.connect({ host, port, tls: isSecure }, AbortSignal.timeout(CONNECT_MS)).then(
        (connection) => {
          endFloods(connection, MAX_SMTP_BYTES);
          done(null, { connection, secured: isSecure });
        },
        (error) => done(error),
      );
    };
    this.#pool = new SMTPPool({
      host,
      port,
      auth: { user, pass: password },
      secure: isSecure,
      requireTLS: encryption === 'starttls',
      ignoreTLS: encryption === 'none',
      // Without a login, a server would refuse the email, or take it for spam.
      forceAuth: true,
      maxConnections: CONNECTIONS_PER_ACCOUNT,
      // By default, an email goes out again if its connection ends.
      maxRequeues: 0,
      idleTimeout: IDLE_MS,
      connectionTimeout: CONNECT_MS,
      greetingTimeout: CONNECT_MS,
      getSocket,
    });
    this.#pool.on('clear', onIdle);
  }

  /**
   * Hands an email over.
   * @param hasWorked whether the account sent an email before
   */
  async send(mail: ComposedMail, signal: AbortSignal, hasWorked: boolean): Promise<readonly string[]> {
    this.#pending++;
    if (performance.now() >= this.#crowdedUntil) this.#pool.options.maxConnections = CONNECTIONS_PER_ACCOUNT;
    try {
      for (let isLast = false; ; ) {
        const outcome = await this.#attempt(mail, signal, hasWorked);
        if ('rejected' in outcome) return outcome.rejected;
        if (outcome.isCrowded && this.#lowerMost()) continue;
        // An idle connection may have ended. Nothing of the email was read, so it goes out over another connection.
        if (isLast || !outcome.isUntouched) throw outcome.error;
        isLast = true;
      }
    } finally {
      this.#pending--;
      if (this.#isRetired) this.retire();
    }
  }

  async #attempt(mail: ComposedMail, signal: AbortSignal, hasWorked: boolean): Promise<Outcome> {
    const message = new OutgoingMessage(mail);
    try {
      return await this.#handOver(message, signal);
    } catch (error) {
      message.end();
      const { handover } = message;
      return {
        error: smtpError(error, { handover, credentials: this.credentials, hasWorked }),
        isCrowded: handover === 'none' && isConnectionRefused(error),
        isUntouched: handover === 'none' && isConnectionLost(error),
      };
    }
  }

  /**
   * A server may allow fewer connections per user: Exchange Online allows three. Then the email waits for a connection
   * that another email uses now.
   * @returns whether there may be such a connection
   */
  #lowerMost(): boolean {
    const { options } = this.#pool;
    if (this.#pending === 1 || options.maxConnections === 1) return false;
    options.maxConnections--;
    this.#crowdedUntil = performance.now() + CROWDED_MS;
    return true;
  }

  /** Without nodemailer's `sendMail`, which composes messages, and begins to read a finished one too early. */
  #handOver(message: OutgoingMessage, signal: AbortSignal): Promise<{ readonly rejected: readonly string[] }> {
    // All that a pool calls.
    const mail = { message, data: { signal } } as unknown as Parameters<SMTPPool['send']>[0];
    return new Promise((resolve, reject) => {
      this.#pool.send(mail, (error, info) => (info === undefined ? reject(error) : resolve(info)));
    });
  }

  /** Ends the connections, after the emails that are being sent. */
  retire(): void {
    this.#isRetired = true;
    if (this.#pending === 0) this.#pool.close();
  }
}
