import { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import nodemailer, { type Mail, type SMTPPoolOptions, type SMTPPoolSentMessageInfo } from 'nodemailer';
import type { ComposedMail } from '../../mail/mail.ts';
import type { Net } from '../../security/net.ts';
import type { MailAccount, ProviderError } from '../provider.ts';
import type { ImapCredentials } from './credentials.ts';
import { endFloods, MAX_SMTP_BYTES } from './end-floods.ts';
import { type Handover, isConnectionLost, smtpError } from './smtp-error.ts';

const MAX_POOLS = 200;
const MAX_WORKED = 10_000;
const CONNECTIONS_PER_ACCOUNT = 2;
const IDLE_MS = 30_000;
/** For the way to the server, the greeting and TLS together. */
const CONNECT_MS = 20_000;

/** The open connections to mail servers for sending, of the accounts that were used last. */
export class SmtpPools {
  readonly #pools = new LRUCache<string, SmtpPool>({ max: MAX_POOLS, dispose: (pool) => pool.retire() });
  /** The accounts that sent an email from this process. */
  readonly #worked = new LRUCache<string, true>({ max: MAX_WORKED });

  /** @returns the recipients that the server refused, while it took the email for the others. @throws ProviderError */
  async send(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<readonly string[]> {
    const rejected = await this.#of(account).send(mail, signal, this.#worked.has(account.id));
    this.#worked.set(account.id, true);
    return rejected;
  }

  /** The connections of an account. They are new if its credentials or its proxy changed. */
  #of({ id, credentials, net }: MailAccount): SmtpPool {
    const known = this.#pools.get(id);
    if (known?.net === net && isDeepStrictEqual(known.credentials, credentials)) return known;
    const pool = new SmtpPool(credentials as ImapCredentials, net, () => {
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

/** The progress of one message. */
interface Progress {
  readonly mail: ComposedMail;
  /** The message as the connection reads it. Undefined: no connection was given to it yet. */
  stream: Readable | undefined;
  isRead: boolean;
}

/** The outcome of an attempt. */
type Outcome =
  | { readonly rejected: readonly string[] }
  | { readonly error: ProviderError; readonly isUntouched: boolean };

/** The connections of one account. They log in at the first email, and end 30 seconds after the last one. */
class SmtpPool {
  readonly #transport: Mail<SMTPPoolSentMessageInfo, SMTPPoolOptions>;
  readonly #progress = new WeakMap<object, Progress>();
  #pending = 0;
  #isRetired = false;

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
    this.#transport = nodemailer.createTransport({
      pool: true,
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
      disableFileAccess: true,
      disableUrlAccess: true,
      getSocket,
    });
    this.#transport.on('clear', onIdle);
    this.#transport.use('stream', ({ data, message }, done) => {
      const progress = this.#progress.get(data.envelope as object);
      message?.processFunc((raw) => {
        if (progress === undefined) return raw;
        raw.resume();
        return read(progress);
      });
      done();
    });
  }

  /**
   * Hands an email over.
   * @param hasWorked whether the account sent an email before
   */
  async send(mail: ComposedMail, signal: AbortSignal, hasWorked: boolean): Promise<readonly string[]> {
    this.#pending++;
    try {
      for (let isLast = false; ; isLast = true) {
        const outcome = await this.#attempt(mail, signal, hasWorked);
        if ('rejected' in outcome) return outcome.rejected;
        // An idle connection may have ended. Nothing of the email was read, so it goes out over another connection.
        if (isLast || !outcome.isUntouched) throw outcome.error;
      }
    } finally {
      this.#pending--;
      if (this.#isRetired) this.retire();
    }
  }

  async #attempt(mail: ComposedMail, signal: AbortSignal, hasWorked: boolean): Promise<Outcome> {
    const envelope = { from: mail.from.address, to: [...mail.recipients] };
    const progress: Progress = { mail, stream: undefined, isRead: false };
    this.#progress.set(envelope, progress);
    try {
      const { rejected } = await this.#transport.sendMail({ envelope, raw: '\r\n', signal });
      return { rejected };
    } catch (error) {
      progress.stream?.destroy();
      const handover = handoverOf(progress);
      return {
        error: smtpError(error, { handover, credentials: this.credentials, hasWorked }),
        isUntouched: handover === 'none' && isConnectionLost(error),
      };
    }
  }

  /** Ends the connections, after the emails that are being sent. */
  retire(): void {
    this.#isRetired = true;
    if (this.#pending === 0) this.#transport.close();
  }
}

/** The message, opened when the server asks for it. nodemailer would read the beginning of `raw` before that. */
function read(progress: Progress): Readable {
  async function* chunks() {
    yield* progress.mail.open();
  }
  const stream = Readable.from(chunks(), { objectMode: false });
  // After this, the connection writes the line that makes the server send the email.
  stream.once('end', () => {
    progress.isRead = true;
  });
  progress.stream = stream;
  return stream;
}

const handoverOf = ({ stream, isRead }: Progress): Handover =>
  isRead ? 'all' : stream?.readableDidRead ? 'part' : 'none';
