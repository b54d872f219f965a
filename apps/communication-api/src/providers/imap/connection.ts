import { isDeepStrictEqual } from 'node:util';
import type { ImapFlow } from 'imapflow';
import type { Net } from '../../security/net.ts';
import { proxyRefused } from '../network-error.ts';
import { type MailAccount, ProviderError } from '../provider.ts';
import { connectionParamsOf, type ImapCredentials, type MailServer } from './credentials.ts';
import { isLost, openMailbox } from './open-mailbox.ts';
import { Permits } from './permits.ts';
import { ServerError } from './server-error.ts';
import { withoutServerWords } from './server-words.ts';

/** Servers allow a user about ten connections, and its mail programs need some of them. */
const MAX_PER_ACCOUNT = 2;
const MAX_OPEN = 100;
const IDLE_MS = 30_000;
/** For the answer to a NOOP or a LOGOUT. */
const COURTESY_MS = 5_000;

interface IdleConnection {
  readonly accountId: string;
  readonly client: ImapFlow;
  readonly server: MailServer;
  /** The way to the server. */
  readonly net: Net;
  readonly timer: NodeJS.Timeout;
  readonly onClose: () => void;
}

export interface MailboxesOptions {
  /** How long a connection that nothing uses is kept, in milliseconds. Default: 30,000. */
  readonly idleMs?: number | undefined;
  /** Connections of this process at a time. Default: 100. */
  readonly maxOpen?: number | undefined;
}

/** Connections to mailboxes, made when they are needed: at most two per account. A call without a free place waits. */
export class Mailboxes {
  /** Connections that are not in use, the least recently used first. */
  readonly #idle = new Set<IdleConnection>();
  readonly #perAccount = new Map<string, Permits>();
  readonly #open: Permits;
  readonly #idleMs: number;
  #isClosed = false;

  constructor({ idleMs = IDLE_MS, maxOpen = MAX_OPEN }: MailboxesOptions = {}) {
    this.#idleMs = idleMs;
    this.#open = new Permits(maxOpen);
  }

  /**
   * Calls a function with a connection of an account that is logged in, and that nothing else uses meanwhile. The
   * function releases each lock of a mailbox that it takes. If it throws, its error is thrown, without the server's
   * words, unless the connection was lost. It is never called twice.
   * @throws ProviderError 401, 503 or 504, all with `sent: 'no'`: the caller knows whether the function sent something
   */
  async withMailbox<Result>(
    account: MailAccount,
    signal: AbortSignal,
    use: (client: ImapFlow) => Promise<Result>,
  ): Promise<Result> {
    const credentials = account.credentials as ImapCredentials;
    try {
      return await this.#withPermit(account.id, signal, async () => {
        const client = (await this.#takeIdle(account)) ?? (await this.#connect(account, signal));
        return this.#use(account, client, signal, use);
      });
    } catch (error) {
      if (error instanceof ServerError) throw providerErrorOf(error, credentials);
      if (signal.aborted) throw providerErrorOf(new ServerError('timeout', error), credentials);
      if (isLost(error)) throw providerErrorOf(new ServerError('refused', error), credentials);
      throw withoutServerWords(error);
    }
  }

  /** Closes all connections: those in use when they are not any more. */
  close(): void {
    this.#isClosed = true;
    for (const idle of this.#idle) this.#end(idle);
  }

  async #withPermit<Result>(accountId: string, signal: AbortSignal, run: () => Promise<Result>): Promise<Result> {
    const permits = this.#perAccount.get(accountId) ?? new Permits(MAX_PER_ACCOUNT);
    this.#perAccount.set(accountId, permits);
    await permits.take(signal);
    try {
      return await run();
    } finally {
      permits.give();
      if (permits.areAllFree) this.#perAccount.delete(accountId);
    }
  }

  async #use<Result>(
    account: MailAccount,
    client: ImapFlow,
    signal: AbortSignal,
    use: (client: ImapFlow) => Promise<Result>,
  ): Promise<Result> {
    // Commands that wait for an answer fail if the connection is closed.
    const close = (): void => client.close();
    signal.addEventListener('abort', close, { once: true });
    try {
      signal.throwIfAborted();
      return await use(client);
    } finally {
      signal.removeEventListener('abort', close);
      if (client.usable && !signal.aborted) this.#keep(account, client);
      else this.#discard(client);
    }
  }

  async #connect({ credentials, net }: MailAccount, signal: AbortSignal): Promise<ImapFlow> {
    const [oldest] = this.#idle;
    if (!this.#open.areSomeFree && oldest !== undefined) this.#end(oldest);
    await this.#open.take(signal);
    try {
      return await openMailbox((credentials as ImapCredentials).imap, net, signal);
    } catch (error) {
      this.#open.give();
      throw error;
    }
  }

  /** A connection of the account that still works. */
  async #takeIdle({ id, credentials, net }: MailAccount): Promise<ImapFlow | undefined> {
    const { imap } = credentials as ImapCredentials;
    for (const idle of [...this.#idle].reverse()) {
      if (idle.accountId !== id) continue;
      // The account may have been reconnected with other servers, another password or another proxy.
      if (idle.net !== net || !isDeepStrictEqual(idle.server, imap)) this.#end(idle);
      else {
        this.#forget(idle);
        if (await stillWorks(idle.client)) return idle.client;
        this.#discard(idle.client);
      }
    }
    return undefined;
  }

  #keep({ id, credentials, net }: MailAccount, client: ImapFlow): void {
    // Another account may wait for the place.
    if (this.#isClosed || this.#open.areSomeAwaited) {
      this.#discard(client);
      return;
    }
    const idle: IdleConnection = {
      accountId: id,
      client,
      server: (credentials as ImapCredentials).imap,
      net,
      timer: setTimeout(() => this.#end(idle), this.#idleMs).unref(),
      onClose: () => this.#end(idle),
    };
    client.once('close', idle.onClose);
    this.#idle.add(idle);
  }

  /** Takes a connection out of the idle ones, for its next use. */
  #forget(idle: IdleConnection): void {
    clearTimeout(idle.timer);
    idle.client.off('close', idle.onClose);
    this.#idle.delete(idle);
  }

  #end(idle: IdleConnection): void {
    this.#forget(idle);
    this.#discard(idle.client);
  }

  #discard(client: ImapFlow): void {
    // The answer to LOGOUT closes the connection. `close` after it is for a server that does not answer.
    if (client.usable) {
      const timer = setTimeout(() => client.close(), COURTESY_MS).unref();
      client.logout().then(
        () => clearTimeout(timer),
        () => client.close(),
      );
    } else client.close();
    this.#open.give();
  }
}

/** Whether the server answers on a connection that was idle. */
async function stillWorks(client: ImapFlow): Promise<boolean> {
  const timer = setTimeout(() => client.close(), COURTESY_MS);
  try {
    if (client.usable) await client.noop();
    return client.usable;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

/** The error of an account that was linked, so its servers worked before. */
function providerErrorOf(error: ServerError, credentials: ImapCredentials): ProviderError {
  const extras = { cause: error };
  const shown = { ...extras, connectionParams: connectionParamsOf(credentials) };
  switch (error.failure) {
    case 'credentials':
      return new ProviderError(
        'no',
        401,
        'errors/invalid_credentials',
        'The IMAP server refused the login. The user must link the account again.',
        shown,
      );
    case 'proxy_credentials':
      return proxyRefused(shown);
    case 'forbidden':
    case 'protocol':
      return new ProviderError(
        'no',
        401,
        'errors/invalid_imap_configuration',
        'The service may not connect to the IMAP server, or the server does not speak IMAP with these settings.',
        shown,
      );
    case 'unavailable':
      return new ProviderError('no', 503, 'errors/service_unavailable', 'The IMAP server cannot serve now.', extras);
    case 'timeout':
      return new ProviderError('no', 504, 'errors/request_timeout', 'The IMAP server did not answer in time.', extras);
    case 'refused':
    case 'tls':
    case 'unresolved':
      return new ProviderError('no', 503, 'errors/network_down', 'The IMAP server could not be reached.', extras);
  }
}
