import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createCertificate } from 'headgate-testbed/certificate';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Mailboxes, type MailboxesOptions } from '../../../src/providers/imap/connection.ts';
import type { ImapCredentials, MailServer } from '../../../src/providers/imap/credentials.ts';
import type { MailAccount } from '../../../src/providers/provider.ts';
import { Egress } from '../../../src/security/egress.ts';
import { cleanUpLater } from '../../support/clean-up.ts';
import { type Dovecot, type MailUser, startDovecot } from '../../support/dovecot.ts';
import { logged, secretsIn } from '../../support/logged.ts';
import { secret } from '../../support/secret.ts';

let dovecot: Dovecot;
let user: MailUser;
beforeAll(async () => {
  dovecot = await startDovecot();
  user = dovecot.user('ann@example.test');
});

const directNet = new Egress({ policy: 'off' }).through(undefined);
const mailboxes: Mailboxes[] = [];
afterEach(() => {
  for (const each of mailboxes.splice(0)) each.close();
});

function newMailboxes(options?: MailboxesOptions): Mailboxes {
  const made = new Mailboxes(options);
  mailboxes.push(made);
  return made;
}

function accountAt(server: Partial<MailServer>, id = 'acc_1'): MailAccount {
  const imap: MailServer = {
    host: 'localhost',
    port: dovecot.imapsPort,
    encryption: 'tls',
    user: user.address,
    password: user.password,
    ...server,
  };
  const credentials: ImapCredentials = { imap, smtp: { ...imap, port: 465 } };
  const renew = (): never => {
    throw new Error('imap renews nothing.');
  };
  return { id, address: user.address, credentials, net: directNet, renew };
}

const signal = (): AbortSignal => AbortSignal.timeout(20_000);
const foldersOf = (box: Mailboxes, account: MailAccount): Promise<readonly string[]> =>
  box.withMailbox(account, signal(), async (client) => (await client.list()).map(({ path }) => path).sort());
/** How often a user has logged in. The server writes its log a moment later. */
const logins = ({ address }: MailUser): number => dovecot.log().split(`Login: user=<${address}>`).length - 1;

/** A new user, whose logins only one test counts, and the account. */
function newUser(): { readonly own: MailUser; readonly account: MailAccount } {
  const own = dovecot.user(`${randomUUID()}@example.test`);
  return { own, account: accountAt({ user: own.address, password: own.password }) };
}

/** A server that says the given words to every connection. */
async function startTalker(talk: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    talk(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

describe('a connection', () => {
  test.each([
    ['tls', 'imapsPort'],
    ['starttls', 'imapPort'],
    ['none', 'imapPort'],
  ] as const)('with encryption %s', async (encryption, port) => {
    const { address: user, password } = dovecot.user(`${encryption}@example.test`);
    const account = accountAt({ user, password, encryption, port: dovecot[port] });
    expect(await foldersOf(newMailboxes(), account)).toEqual(['INBOX', 'Sent']);
    const login = () => new RegExp(`Login: user=<${user}>.*`).exec(dovecot.log())?.[0];
    await expect.poll(login).toBeDefined();
    expect(login()?.includes(', TLS,')).toBe(encryption !== 'none');
  });

  test('to an address instead of a name', async () => {
    const box = newMailboxes();
    for (const encryption of ['tls', 'starttls'] as const) {
      const port = encryption === 'tls' ? dovecot.imapsPort : dovecot.imapPort;
      expect(await foldersOf(box, accountAt({ host: '127.0.0.1', encryption, port }))).toEqual(['INBOX', 'Sent']);
    }
  });

  test('is used again, by one caller at a time', async () => {
    const box = newMailboxes();
    const { own, account } = newUser();
    await foldersOf(box, account);
    await foldersOf(box, account);
    await expect.poll(() => logins(own)).toBe(1);
    const inUse = new Set<unknown>();
    let goOn = (): void => {};
    const both = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const visit = (): Promise<void> =>
      box.withMailbox(account, signal(), async (client) => {
        expect(inUse.has(client)).toBe(false);
        inUse.add(client);
        if (inUse.size === 2) goOn();
        await both;
        await client.noop();
        inUse.delete(client);
      });
    await Promise.all(Array.from({ length: 6 }, visit));
    // An account has two at most, so only one more was made.
    await expect.poll(() => logins(own)).toBe(2);
  });

  test('that the server has ended meanwhile is replaced', async () => {
    const box = newMailboxes();
    await foldersOf(box, accountAt({}));
    await dovecot.kill();
    await dovecot.restart();
    expect(await foldersOf(box, accountAt({}))).toEqual(['INBOX', 'Sent']);
  });

  test('of an old password is not used any more', async () => {
    const box = newMailboxes();
    await foldersOf(box, accountAt({}));
    await expect(foldersOf(box, accountAt({ password: 'other' }))).rejects.toMatchObject({ status: 401 });
  });

  test('that nothing uses is closed', async () => {
    const box = newMailboxes({ idleMs: 20 });
    const client = await box.withMailbox(accountAt({}), signal(), async (used) => used);
    await expect.poll(() => client.isClosed).toBe(true);
    expect(await foldersOf(box, accountAt({}))).toEqual(['INBOX', 'Sent']);
  });

  test('of another account gives its place away if it is idle, and is waited for if not', async () => {
    const box = newMailboxes({ maxOpen: 1 });
    const other = dovecot.user(`${randomUUID()}@example.test`);
    const bob = (): MailAccount => accountAt({ user: other.address, password: other.password }, 'acc_2');
    const first = await box.withMailbox(accountAt({}), signal(), async (client) => client);
    const second = await box.withMailbox(bob(), signal(), async (client) => {
      expect(first.usable).toBe(false);
      const waiting = foldersOf(box, accountAt({}));
      expect(await Promise.race([waiting, client.list().then(() => 'still waiting')])).toBe('still waiting');
      return { client, waiting };
    });
    expect(await second.waiting).toEqual(['INBOX', 'Sent']);
    expect(second.client.usable).toBe(false);
    // A call that cannot wait any more leaves no place behind.
    await box.withMailbox(bob(), signal(), async () => {
      await expect(
        box.withMailbox(accountAt({}), AbortSignal.timeout(50), async () => 'no error'),
      ).rejects.toMatchObject({ status: 504, type: 'errors/request_timeout' });
    });
    expect(await foldersOf(box, accountAt({}))).toEqual(['INBOX', 'Sent']);
  });

  test('with any characters in the password', async () => {
    const { address, password } = dovecot.user('carl@example.test', 'pä ss"w\\ör{3}🔑%');
    expect(await foldersOf(newMailboxes(), accountAt({ user: address, password }))).toEqual(['INBOX', 'Sent']);
  });

  test('is closed with its Mailboxes', async () => {
    const box = newMailboxes();
    const client = await box.withMailbox(accountAt({}), signal(), async (used) => used);
    box.close();
    await expect.poll(() => client.isClosed).toBe(true);
  });
});

describe('an error', () => {
  const errorOf = (server: Partial<MailServer>, within = signal()): Promise<Error & Record<string, unknown>> =>
    newMailboxes()
      .withMailbox(accountAt(server), within, async () => 'no error')
      .then(
        (value) => ({ value }) as never,
        (error) => error,
      );

  test('of the password is 401 with the servers, and without the password', async () => {
    const error = await errorOf({ password: 'wrong-password' });
    expect(error).toMatchObject({
      sent: 'no',
      status: 401,
      type: 'errors/invalid_credentials',
      connectionParams: { imap_host: 'localhost', imap_port: dovecot.imapsPort, imap_user: 'ann@example.test' },
    });
    expect(JSON.stringify([error, error.message])).not.toContain('wrong-password');
  });

  test('of a user that the server does not know is the same', async () => {
    expect(await errorOf({ user: 'nobody@example.test' })).toMatchObject({
      status: 401,
      type: 'errors/invalid_credentials',
    });
  });

  test('of a certificate that is not trusted, or for another host', async () => {
    const other = await startDovecot(undefined, createCertificate('localhost'));
    for (const [port, encryption] of [
      [other.imapsPort, 'tls'],
      [other.imapPort, 'starttls'],
    ] as const) {
      expect(await errorOf({ port, encryption })).toMatchObject({ status: 503, type: 'errors/network_down' });
    }
    expect(other.log()).not.toContain('Login:');
  });

  test('of STARTTLS that the server does not have: the password is not sent', async () => {
    const heard: string[] = [];
    const port = await startTalker((socket) => {
      socket.write('* OK [CAPABILITY IMAP4rev1] ready\r\n');
      socket.on('data', (data) => {
        heard.push(String(data));
        socket.write(`${String(data).split(' ')[0]} OK done\r\n`);
      });
    });
    expect(await errorOf({ port, encryption: 'starttls' })).toMatchObject({ sent: 'no' });
    expect(heard.join('')).not.toContain(user.password);
  });

  test.each([
    ['that is full', '* BYE Too many connections\r\n', 503, 'errors/service_unavailable'],
    ['without a login', '* OK [CAPABILITY IMAP4rev1 LOGINDISABLED] hi\r\n', 401, 'errors/invalid_imap_configuration'],
    ['that ends the connection', '', 503, 'errors/network_down'],
  ])('of a server %s', async (_, words, status, type) => {
    const port = await startTalker((socket) => {
      socket.write(words);
      if (!words.startsWith('* OK')) socket.end();
    });
    expect(await errorOf({ port, encryption: 'none' })).toMatchObject({ status, type });
  });

  test('of a server that never ends a line: little of it is read', async () => {
    let isClosed = false;
    const port = await startTalker((socket) => {
      const talk = (): void => {
        while (!socket.destroyed && socket.write('x'.repeat(65_536)));
      };
      socket.write('* OK ');
      socket.on('drain', talk).on('close', () => {
        isClosed = true;
      });
      talk();
    });
    expect(await errorOf({ port, encryption: 'none' })).toMatchObject({
      status: 401,
      type: 'errors/invalid_imap_configuration',
    });
    await expect.poll(() => isClosed).toBe(true);
  });

  test('of a server that says nothing, when the caller cannot wait any more', async () => {
    const port = await startTalker(() => {});
    expect(await errorOf({ port, encryption: 'none' }, AbortSignal.timeout(200))).toMatchObject({
      status: 504,
      type: 'errors/request_timeout',
    });
  });

  test('of a server that cannot check the password now', async () => {
    const port = await startTalker((socket) => {
      socket.write('* OK [CAPABILITY IMAP4rev1] ready\r\n');
      socket.on('data', (data) => {
        const [tag, command] = String(data).split(' ');
        socket.write(command === 'LOGIN' ? `${tag} NO [UNAVAILABLE] later\r\n` : `${tag} OK done\r\n`);
      });
    });
    expect(await errorOf({ port, encryption: 'none' })).toMatchObject({
      status: 503,
      type: 'errors/service_unavailable',
    });
  });

  test.each([
    ['at the login', 'LOGIN', (words: string) => `NO ${words}`],
    ['at the login, for now', 'LOGIN', (words: string) => `NO [UNAVAILABLE] ${words}`],
    ['when it ends the connection', 'LOGIN', (words: string) => `OK ok\r\n* BYE ${words}`],
    ['at a command', 'LIST', (words: string) => `NO [${words}] ${words}`],
    ['at a command that it does not know', 'LIST', (words: string) => `BAD ${words}`],
    ['as Exchange does', 'LIST', (words: string) => `OK ok\r\nServer Unavailable. ${words}`],
  ])('of a server that repeats the password %s: the log does not have it', async (_, refused, answer) => {
    const password = secret();
    for (const words of [password, Buffer.from(`\0ann@example.test\0${password}`).toString('base64')]) {
      const port = await startTalker((socket) => {
        socket.write('* OK [CAPABILITY IMAP4rev1] ready\r\n');
        socket.on('data', (data) => {
          const [tag, command = ''] = String(data).trim().split(' ');
          socket.write(`${tag} ${command === refused ? answer(words) : 'OK done'}\r\n`);
          if (answer(words).includes('* BYE') && command === refused) socket.end();
        });
      });
      const account = accountAt({ port, encryption: 'none', password });
      const listed = newMailboxes().withMailbox(account, signal(), (client) => client.list());
      const thrown = await listed.catch((error: unknown) => error);
      expect(secretsIn(logged(thrown))).toEqual([]);
    }
  });

  test('of the function itself is thrown as it is, and the connection is used again', async () => {
    const box = newMailboxes();
    const { own, account } = newUser();
    const fault = new Error('mine');
    await expect(box.withMailbox(account, signal(), async () => Promise.reject(fault))).rejects.toBe(fault);
    await foldersOf(box, account);
    await expect.poll(() => logins(own)).toBe(1);
  });

  test('of a connection that is lost in use', async () => {
    const lost = newMailboxes().withMailbox(accountAt({}), signal(), async (client) => {
      await dovecot.kill();
      return client.list();
    });
    await expect(lost).rejects.toMatchObject({ sent: 'no', status: 503, type: 'errors/network_down' });
    await dovecot.restart();
  });
});
