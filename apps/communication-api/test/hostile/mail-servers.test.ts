import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { startCpuTimer } from 'headgate-testbed/cpu-timer';
import { describe, expect, inject, test } from 'vitest';
import type { ComposedMail } from '../../src/mail/mail.ts';
import { Mailboxes } from '../../src/providers/imap/connection.ts';
import type { Encryption, ImapCredentials, MailServer } from '../../src/providers/imap/credentials.ts';
import { findParent, referencesIn } from '../../src/providers/imap/mailbox.ts';
import { testServers } from '../../src/providers/imap/server-test.ts';
import { smtpError } from '../../src/providers/imap/smtp-error.ts';
import { SmtpPools } from '../../src/providers/imap/smtp-pools.ts';
import type { MailAccount } from '../../src/providers/provider.ts';
import { Egress } from '../../src/security/egress.ts';
import type { Net } from '../../src/security/net.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { startScriptedSmtp } from '../support/scripted-smtp.ts';
import { secret } from '../support/secret.ts';

const password = secret();
const directNet = new Egress({ policy: 'off' }).through(undefined);
/** The floods must end before. */
const deadline = (): AbortSignal => AbortSignal.timeout(15_000);

const FOLDER = '* LIST () "/" "aaa"\r\n';

/** A server for each connection of which a function speaks. */
async function startServer(talk: (socket: Socket) => void, encryption: Encryption = 'none'): Promise<number> {
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    talk(socket);
  };
  const server: Server = encryption === 'tls' ? createTlsServer(inject('certificate'), accept) : createServer(accept);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Says the same without end. */
function flood(socket: Socket, text: string): void {
  const chunk = text.repeat(Math.ceil(65_536 / text.length));
  const more = (): void => {
    if (socket.destroyed) return;
    if (socket.write(chunk)) setImmediate(more);
    else socket.once('drain', more);
  };
  more();
}

/** An IMAP server that lets everyone in, and floods the answer to a command. */
const imapFlood =
  (command: string, text: string) =>
  (socket: Socket): void => {
    socket.write('* OK [CAPABILITY IMAP4rev1] Hello\r\n');
    socket.on('data', (data) => {
      for (const line of data.toString().split('\r\n')) {
        const [tag, name = ''] = line.split(' ');
        if (name === command && !line.includes('"" ""')) flood(socket, text);
        else if (name === 'LOGIN') socket.write(`${tag} OK [CAPABILITY IMAP4rev1] Welcome\r\n`);
        else if (name === 'LIST') socket.write(`* LIST () "/" ""\r\n${tag} OK Done\r\n`);
        else if (name !== '') socket.write(`${tag} OK Done\r\n`);
      }
    });
  };

const serverAt = (port: number, encryption: Encryption = 'none'): MailServer => ({
  ...{ host: 'localhost', port, encryption, user: 'ann@example.com', password },
});

const accountAt = (credentials: Partial<ImapCredentials>, net: Net = directNet): MailAccount => ({
  id: 'acc_1',
  address: 'ann@example.com',
  credentials: { imap: serverAt(1), smtp: serverAt(1), ...credentials },
  net,
  renew: () => Promise.reject(new Error('Nothing to renew.')),
});

const mail: ComposedMail = {
  messageId: '<1@example.com>',
  from: { address: 'ann@example.com' },
  recipients: ['bob@example.org'],
  attachments: [],
  open: () => Readable.from(['Subject: Hello\r\n\r\nHello\r\n']),
  hold: () => async () => undefined,
};

/** The direct way out, and how many connections were made over it. */
function countedNet(): Net & { connections: number } {
  const net = {
    connections: 0,
    connect: (...values: Parameters<Net['connect']>) => {
      net.connections++;
      return directNet.connect(...values);
    },
    fetch: directNet.fetch,
  };
  return net;
}

describe('a server that sends without end is left long before the deadline', () => {
  test.each([
    ['folders', 'LIST', FOLDER, 'none'],
    ['folders over TLS', 'LIST', FOLDER, 'tls'],
  ] as const)('IMAP: %s', async (_, command, text, encryption) => {
    const port = await startServer(imapFlood(command, text), encryption);
    const mailboxes = new Mailboxes();
    const signal = deadline();
    const used = mailboxes.withMailbox(accountAt({ imap: serverAt(port, encryption) }), signal, async (client) => {
      await client.noop();
      return findParent(client, '<1@example.com>', signal);
    });
    await expect(used).rejects.toMatchObject({ sent: 'no' });
    expect(signal.aborted).toBe(false);
    mailboxes.close();
  });

  test.each(['none', 'tls'] as const)('IMAP: 10,000 folders are no flood (encryption %s)', async (encryption) => {
    const folders = Array.from({ length: 10_000 }, (_, i) => `* LIST () "/" "folder ${i}"\r\n`).join('');
    const port = await startServer((socket) => {
      socket.write('* OK [CAPABILITY IMAP4rev1] Hello\r\n');
      socket.on('data', (data) => {
        const [tag = '', name] = data.toString().split(' ');
        if (name === 'LIST' && !data.toString().includes('"" ""')) socket.write(folders);
        socket.write(`${tag} OK Done\r\n`);
      });
    }, encryption);
    const mailboxes = new Mailboxes();
    const account = accountAt({ imap: serverAt(port, encryption) });
    const lists = await mailboxes.withMailbox(account, deadline(), async (client) => [
      await client.list(),
      // Each answer is counted for itself.
      await client.list(),
    ]);
    expect(lists.map((list) => list.length)).toEqual([10_000, 10_000]);
    mailboxes.close();
  });

  test.each([
    ['empty lines instead of a greeting', '\r\n', 'none'],
    ['empty lines instead of a greeting, over TLS', '\r\n', 'tls'],
    ['a line without an end', 'a', 'none'],
    ['a greeting without an end', '220-Hello\r\n', 'none'],
  ] as const)('SMTP: %s', async (_, text, encryption) => {
    const port = await startServer((socket) => flood(socket, text), encryption);
    const pools = new SmtpPools();
    const signal = deadline();
    const account = accountAt({ smtp: serverAt(port, encryption) });
    await expect(pools.send(mail, account, signal)).rejects.toMatchObject({ sent: 'no' });
    expect((await testServers(account.credentials as ImapCredentials, directNet, signal)).smtp).toBe('refused');
    expect(signal.aborted).toBe(false);
    pools.close();
  });
});

describe('a text that is made to take long', () => {
  test('a refusal of one word does not block the process', () => {
    const response = `550 ${'a'.repeat(100_000)}`;
    const error = Object.assign(new Error(response), {
      code: 'EMESSAGE',
      response,
      responseCode: 550,
      command: 'DATA',
    });
    const credentials: ImapCredentials = { imap: serverAt(1), smtp: serverAt(1) };
    const cpuMs = startCpuTimer();
    const { type } = smtpError(error, { handover: 'all', credentials, hasWorked: true });
    expect(type).toBe('errors/cant_send_message');
    // It took 20 seconds, and 40 minutes for the longest reply.
    expect(cpuMs()).toBeLessThan(3_000);
  });

  test('references that almost look like ids do not block the process', () => {
    const cpuMs = startCpuTimer();
    expect(referencesIn(`References: ${`<${'@'.repeat(600)}`.repeat(10_000)} <a@example.com>\r\n`)).toEqual([
      '<a@example.com>',
    ]);
    // It took 10 seconds.
    expect(cpuMs()).toBeLessThan(3_000);
  });
});

describe('connections of an account whose proxy was changed', () => {
  test('for sending are made anew, over the new proxy', async () => {
    const server = await startScriptedSmtp();
    const pools = new SmtpPools();
    const [before, after] = [countedNet(), countedNet()];
    const credentials = { smtp: serverAt(server.port) };
    for (const net of [before, before, after, after]) await pools.send(mail, accountAt(credentials, net), deadline());
    expect([before.connections, after.connections, server.accepted]).toEqual([1, 1, 4]);
    pools.close();
    await server.close();
  });

  test('to the mailbox are made anew, over the new proxy', async () => {
    const port = await startServer(imapFlood('nothing', ''));
    const mailboxes = new Mailboxes();
    const [before, after] = [countedNet(), countedNet()];
    for (const net of [before, before, after, after])
      await mailboxes.withMailbox(accountAt({ imap: serverAt(port) }, net), deadline(), (client) => client.noop());
    expect([before.connections, after.connections]).toEqual([1, 1]);
    mailboxes.close();
  });

  test('the way out through the same proxy is the same object', () => {
    const egress = new Egress({ policy: 'off' });
    const proxy = { protocol: 'socks5', host: 'proxy.example.test', port: 1080, username: 'ann', password } as const;
    expect(egress.through({ ...proxy })).toBe(egress.through(proxy));
    expect(egress.through(undefined)).toBe(egress.through(undefined));
    expect(egress.through({ ...proxy, password: secret() })).not.toBe(egress.through(proxy));
  });
});
