import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { freePort } from 'headgate-testbed/redis-server';
import { SMTPServer } from 'smtp-server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ComposedMail } from '../../../src/mail/mail.ts';
import type { ImapCredentials, MailServer } from '../../../src/providers/imap/credentials.ts';
import { ImapMailProvider } from '../../../src/providers/imap/mail.ts';
import { smtpError } from '../../../src/providers/imap/smtp-error.ts';
import { SmtpPools } from '../../../src/providers/imap/smtp-pools.ts';
import { type MailAccount, ProviderError } from '../../../src/providers/provider.ts';
import { Egress } from '../../../src/security/egress.ts';
import { EgressError, type EgressFailure, type Net } from '../../../src/security/net.ts';
import { logged, secretsIn } from '../../support/logged.ts';
import { type ScriptedSmtp, type SmtpScript, startScriptedSmtp } from '../../support/scripted-smtp.ts';
import { secret } from '../../support/secret.ts';

const password = secret();
const directNet = new Egress({ policy: 'off' }).through(undefined);
const CONNECTION_PARAMS = {
  ...{ imap_host: '127.0.0.1', imap_port: 143, imap_user: 'ann', imap_encryption: 'none' },
  ...{ smtp_host: '127.0.0.1', smtp_port: expect.any(Number), smtp_user: 'ann@example.com' },
};
/** A message that is longer than all buffers between its source and the server. */
const LONG = 40_000_000;

let server: ScriptedSmtp;
let pools: SmtpPools;
beforeAll(async () => {
  server = await startScriptedSmtp();
});
afterAll(() => server.close());
beforeEach(() => {
  pools = new SmtpPools();
  Object.assign(server, { script: {}, connections: 0, accepted: 0 });
  server.messages.length = 0;
});
afterEach(() => pools.close());

/** Whether the mailbox behind IMAP takes the password. */
let canRead = false;
const providerOf = (): ImapMailProvider =>
  new ImapMailProvider(pools, {
    withMailbox: async () => {
      if (!canRead) throw new ProviderError('no', 401, 'errors/invalid_credentials', 'No.');
      return true as never;
    },
  });

const accountOf = (smtp: Partial<MailServer> = {}, net: Net = directNet): MailAccount => {
  const both = { host: '127.0.0.1', encryption: 'none', password } as const;
  const credentials: ImapCredentials = {
    imap: { ...both, port: 143, user: 'ann' },
    smtp: { ...both, port: server.port, user: 'ann@example.com', ...smtp },
  };
  return { id: 'acc_1', address: 'ann@example.com', credentials, net, renew: () => Promise.reject(new Error('No.')) };
};

const mailOf = (size = 200, recipients: readonly string[] = ['bob@example.org']): ComposedMail => {
  const line = `${'x'.repeat(76)}\r\n`;
  const open = (): Readable => Readable.from(['Subject: Hello\r\n\r\n', ...Array(Math.ceil(size / 78)).fill(line)]);
  return {
    messageId: '<1@example.com>',
    from: { address: 'ann@example.com' },
    recipients,
    attachments: [],
    open,
    hold: () => async () => undefined,
  };
};

const never = new AbortController().signal;

/** What became of an email, as a test names it. */
async function outcome(account = accountOf(), mail = mailOf(), signal: AbortSignal = never): Promise<unknown> {
  try {
    const { rejected } = await providerOf().send(mail, account, signal);
    return { rejected };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const { sent, status, type, connectionParams } = error;
    expect(JSON.stringify([error.message, connectionParams])).not.toContain(password);
    return { sent, error: `${status} ${type}`, ...(connectionParams === undefined ? {} : { connectionParams }) };
  }
}

const no = (error: string) => ({ sent: 'no', error });
const no401 = (type: string) => ({ sent: 'no', error: `401 ${type}`, connectionParams: CONNECTION_PARAMS });
const unknown = { sent: 'unknown', error: '504 errors/request_timeout' };

describe('a server that repeats the password gets it neither to the client nor into the log', () => {
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  const forms = [password, password.toUpperCase(), encoded(password), encoded(`\0ann@example.com\0${password}`)];
  const STAGES = ['greeting', 'ehlo', 'auth', 'mail', 'rcpt', 'data', 'end'] as const;

  const REPLIES = [
    [421, '4.3.2'],
    [454, '4.7.0'],
    [554, '5.7.1'],
  ] as const;

  test.each(STAGES.flatMap((stage) => REPLIES.map((reply) => [stage, ...reply] as const)))(
    'at %s, with %i',
    async (stage, code, enhanced) => {
      for (const form of forms) {
        const answer = `${code}-${enhanced} I do not want\r\n${code} ${enhanced} this: ${form} (really)`;
        server.script = { [stage]: stage === 'rcpt' ? () => answer : answer };
        const thrown: unknown = await providerOf()
          .send(mailOf(), accountOf(), never)
          .catch((error: unknown) => error);
        expect(thrown).toBeInstanceOf(ProviderError);
        expect(logged(thrown)).not.toContain(form);
        expect(secretsIn(logged(thrown))).toEqual([]);
        pools.close();
      }
    },
  );

  test('of another reply, the client sees what the server says', async () => {
    server.script = { end: '554 5.6.0 I do not want this' };
    await expect(providerOf().send(mailOf(), accountOf(), never)).rejects.toThrow('I do not want this');
  });
});

describe('what a server says becomes an error of the service', () => {
  const rows: readonly (readonly [name: string, script: SmtpScript, expected: object])[] = [
    ['421 instead of a greeting', { greeting: '421 4.3.2 Shutting down' }, no('503 errors/service_unavailable')],
    ['554 instead of a greeting', { greeting: '554 No mail here' }, no('503 errors/service_unavailable')],
    [
      '554 that refuses the address of the service',
      { greeting: '554 5.7.1 [203.0.113.7] is on a blocklist' },
      no('422 errors/ip_rejected_by_server'),
    ],
    ['another protocol', { greeting: 'HTTP/1.1 400 Bad Request' }, no('503 errors/service_unavailable')],
    ['a server that ends the connection at once', { greeting: 'fin' }, no('503 errors/network_down')],
    ['535', { auth: '535 5.7.8 Authentication failed' }, no401('errors/invalid_credentials')],
    ['454 at the login', { auth: '454 4.7.0 Try later' }, no('503 errors/service_unavailable')],
    ['a server without a login', { auth: '503 5.5.1 Not enabled' }, no401('errors/invalid_smtp_configuration')],
    ['530 at the sender', { mail: '530 5.7.0 Authentication required' }, no401('errors/invalid_credentials')],
    ['550 at the sender', { mail: '550 5.1.8 Bad sender' }, no('422 errors/sender_rejected')],
    ['553 at the sender', { mail: '553 Invalid sender' }, no('422 errors/sender_rejected')],
    ['553 for a foreign sender', { mail: '553 5.7.1 Not yours' }, no('422 errors/send_as_denied')],
    [
      '553 for a foreign sender, at the recipient',
      { rcpt: () => '553 5.7.1 <ann@example.com>: Sender address rejected: not owned by user ann' },
      no('422 errors/send_as_denied'),
    ],
    [
      'a sender that is refused at the recipient',
      { rcpt: () => '550 5.1.0 <ann@example.com>: Sender address rejected: undeliverable' },
      no('422 errors/sender_rejected'),
    ],
    ['552 at the sender', { mail: '552 5.3.4 Message size exceeds limit' }, no('422 errors/limit_exceeded')],
    ['every recipient refused', { rcpt: () => '550 5.1.1 Unknown' }, no('422 errors/recipient_rejected')],
    ['every recipient refused for now', { rcpt: () => '451 4.3.0 Later' }, no('503 errors/service_unavailable')],
    ['too many recipients', { rcpt: () => '452 4.5.3 Too many recipients' }, no('429 provider/too_many_requests')],
    [
      'an address of the service that is refused, at the recipient',
      { rcpt: () => '554 5.7.1 Client host [203.0.113.7] blocked using zen.spamhaus.org' },
      no('422 errors/ip_rejected_by_server'),
    ],
    ['550 after the message', { end: '550 5.6.0 Looks like spam' }, no('422 errors/cant_send_message')],
    ['552 after the message', { end: '552 5.3.4 Too big' }, no('422 errors/limit_exceeded')],
    [
      '550 after the message for the address of the service',
      { end: '550 5.7.1 The IP 203.0.113.7 has a bad reputation' },
      no('422 errors/ip_rejected_by_server'),
    ],
    [
      '550 after the message for a foreign sender',
      { end: '550 5.7.60 SMTP; Client does not have permissions to send as this sender' },
      no('422 errors/send_as_denied'),
    ],
    ['the quota of the day', { end: '550 5.4.5 Daily sending quota exceeded' }, no('429 provider/too_many_requests')],
    ['4.7.x at the sender', { mail: '450 4.7.1 Slow down' }, no('429 provider/too_many_requests')],
    ['4xx with words of a rate', { end: '451 Rate limit exceeded' }, no('429 provider/too_many_requests')],
    ['421 with words of a rate', { mail: '421 Too many messages' }, no('429 provider/too_many_requests')],
    ['another 4xx after the message', { end: '452 4.3.1 No space' }, no('503 errors/service_unavailable')],
    ['421 after the message', { end: '421 4.3.2 Shutting down' }, no('503 errors/service_unavailable')],
    ['a refusal of DATA', { data: '554 5.5.1 No' }, no('422 errors/cant_send_message')],
    ['a reset at the sender', { mail: 'reset' }, no('503 errors/network_down')],
    ['an end of the connection at DATA', { data: 'fin' }, no('503 errors/network_down')],
    ['a reset after the message', { end: 'reset' }, unknown],
    ['an end of the connection after the message', { end: 'fin' }, unknown],
  ];

  test.each(rows)('%s', async (_, script, expected) => {
    server.script = script;
    expect(await outcome()).toEqual(expected);
    expect(server.accepted).toBe(0);
  });

  test('all of them without PIPELINING, too', async () => {
    const simple = await startScriptedSmtp([]);
    try {
      for (const [name, script, expected] of rows) {
        simple.script = script;
        pools.close();
        expect([name, await outcome(accountOf({ port: simple.port }))]).toEqual([name, expected]);
      }
      expect(simple.accepted).toBe(0);
    } finally {
      await simple.close();
    }
  });

  test('one of two recipients refused: the other one gets the email', async () => {
    server.script = { rcpt: (address) => (address.startsWith('no') ? '550 5.1.1 Unknown' : undefined) };
    const mail = mailOf(200, ['no@example.org', 'bob@example.org']);
    expect(await outcome(accountOf(), mail)).toEqual({ rejected: ['no@example.org'] });
    expect(server.messages.map(({ recipients }) => recipients)).toEqual([['bob@example.org']]);
  });

  test('a password that only the other half of the mailbox takes', async () => {
    server.script = { auth: '535 5.7.8 Authentication failed' };
    canRead = true;
    try {
      expect(await outcome()).toEqual(no401('errors/invalid_credentials_but_valid_account_imap'));
    } finally {
      canRead = false;
    }
  });

  test('what the server says is shown without addresses of people', async () => {
    server.script = { rcpt: () => '550 5.1.1 <bob@example.org>: \u001b[1munknown' };
    await expect(providerOf().send(mailOf(), accountOf(), never)).rejects.toThrow(
      'Every recipient is refused. The mail server says: 550 5.1.1 <…>: [1munknown',
    );
  });
});

describe('a connection that is not made', () => {
  const failing = (failure: EgressFailure): Net => ({
    ...directNet,
    connect: () => Promise.reject(new EgressError(failure, 'No.')),
  });

  test.each<readonly [EgressFailure, object, object]>([
    ['refused', no('503 errors/network_down'), no('503 errors/network_down')],
    ['timeout', no('503 errors/network_down'), no('503 errors/network_down')],
    ['unresolved', no401('errors/invalid_smtp_configuration'), no('503 errors/network_down')],
    ['tls', no401('errors/invalid_smtp_configuration'), no('503 errors/network_down')],
    ['forbidden', no401('errors/invalid_smtp_configuration'), no401('errors/invalid_smtp_configuration')],
    ['proxy_credentials', no401('errors/invalid_proxy_credentials'), no401('errors/invalid_proxy_credentials')],
  ])('%s, before an email was sent with the account and after', async (failure, before, after) => {
    expect(await outcome(accountOf({}, failing(failure)))).toEqual(before);
    expect(await outcome()).toEqual({ rejected: [] });
    await server.endConnections();
    expect(await outcome(accountOf({}, failing(failure)))).toEqual(after);
  });

  test('no server at the port', async () => {
    expect(await outcome(accountOf({ port: await freePort() }))).toEqual(no('503 errors/network_down'));
  });

  test.each(['tls', 'starttls'] as const)(
    'a certificate that is not trusted, with %s: the server gets no password',
    async (encryption) => {
      let logins = 0;
      const untrusted = new SMTPServer({
        // It brings a certificate of its own.
        secure: encryption === 'tls',
        logger: false,
        onAuth: (_, __, done) => {
          logins++;
          done(null, { user: 'ann' });
        },
      });
      // What the client says about the certificate.
      untrusted.on('error', () => undefined);
      try {
        untrusted.listen(0, '127.0.0.1');
        await once(untrusted.server, 'listening');
        const { port } = untrusted.server.address() as AddressInfo;
        expect(await outcome(accountOf({ port, encryption }))).toEqual(no401('errors/invalid_smtp_configuration'));
        expect(logins).toBe(0);
      } finally {
        await new Promise<void>((resolve) => untrusted.close(() => resolve()));
      }
    },
  );

  test('a server that cannot do STARTTLS never gets the password', async () => {
    expect(await outcome(accountOf({ encryption: 'starttls' }))).toEqual(no401('errors/invalid_smtp_configuration'));
  });
});

describe('an email whose connection ends', () => {
  test.each(['reset', 'fin'] as const)('%s in the middle of the message: it was not sent', async (answer) => {
    server.script = { during: { bytes: 100_000, answer } };
    expect(await outcome(accountOf(), mailOf(LONG))).toEqual(no('503 errors/network_down'));
    expect(server.messages).toEqual([]);
    expect(server.connections).toBe(1);
  });

  test('a small message is not taken for handed over before the server has asked for it', async () => {
    server.script = { mail: 'silence' };
    const asked = AbortSignal.timeout(300);
    expect(await outcome(accountOf(), mailOf(10), asked)).toEqual(no('504 errors/request_timeout'));
  });

  test('silence after the message, until the deadline: unknown', async () => {
    server.script = { end: 'silence' };
    const controller = new AbortController();
    const result = outcome(accountOf(), mailOf(), controller.signal);
    await expect.poll(() => server.messages.length).toBe(1);
    controller.abort();
    expect(await result).toEqual(unknown);
  });

  test('silence in the middle of the message, until the deadline: not sent', async () => {
    server.script = { during: { bytes: 100_000, answer: 'silence' } };
    const asked = AbortSignal.timeout(500);
    // The server still reads, so the message is longer than any buffer.
    expect(await outcome(accountOf(), endless(), asked)).toEqual(no('504 errors/request_timeout'));
    expect(server.messages).toEqual([]);
  });

  test('a source that fails: the server does not get the end of the message', async () => {
    const mail = { ...mailOf(), open: () => Readable.from(failingSource()) };
    expect(await outcome(accountOf(), mail)).toEqual(no('500 errors/unexpected_error'));
    await expect.poll(() => server.connections).toBe(1);
    await server.endConnections();
    expect(server.messages).toEqual([]);
  });

  test.each([
    new EgressError('tls', 'The tunnel has failed.'),
    Object.assign(new Error('bad record'), { code: 'ESOCKET', originalCode: 'ERR_SSL_BAD_RECORD_MAC' }),
    Object.assign(new Error('aborted'), { code: 'EABORT' }),
    Object.assign(new Error('closed'), { code: 'ECONNECTION' }),
    new Error('something else'),
    Object.assign(new Error('354 Go on'), { code: 'EMESSAGE', response: '354 Go on', responseCode: 354 }),
  ])('without a refusal, no error after the message proves that it was not sent: %s', (error) => {
    const { credentials } = accountOf();
    const attempt = { credentials: credentials as ImapCredentials, hasWorked: true };
    expect(smtpError(error, { ...attempt, handover: 'all' })).toMatchObject({ sent: 'unknown', status: 504 });
    expect(smtpError(error, { ...attempt, handover: 'part' })).toMatchObject({ sent: 'no' });
  });

  test('an unknown outcome is never tried again', async () => {
    server.script = { end: 'reset' };
    await outcome();
    expect(server.messages).toHaveLength(1);
    expect(server.connections).toBe(1);
  });
});

describe('connections', () => {
  const many = (): Promise<unknown[]> => Promise.all(Array.from({ length: 8 }, () => outcome()));

  test('are used again, and at most five per account', async () => {
    expect(await many()).toEqual(Array(8).fill({ rejected: [] }));
    expect(server.connections).toBeLessThanOrEqual(5);
    expect(server.accepted).toBe(8);
  });

  test.each([
    ['greeting', '421 4.3.2 Too many connections', '220 mail.test ESMTP'],
    ['auth', '432 4.3.2 Concurrent connections limit exceeded', '235 2.7.0 Ok'],
  ])('of a server that allows two of them: every email is sent, refused at %s or not', async (stage, no, yes) => {
    let answers = 0;
    Object.defineProperty(server.script, stage, { get: () => (++answers > 2 ? no : yes) });
    expect(await many()).toEqual(Array(8).fill({ rejected: [] }));
    expect(server.accepted).toBe(8);
  });

  test('of a server that allows none: every email is refused', async () => {
    server.script = { greeting: '421 4.3.2 Shutting down' };
    expect(await many()).toEqual(Array(8).fill(no('503 errors/service_unavailable')));
    expect(server.connections).toBeLessThanOrEqual(8 + 4);
  });

  test('that the server has ended while they were idle are replaced, and the email is sent once', async () => {
    for (let i = 1; i <= 3; i++) {
      expect(await outcome()).toEqual({ rejected: [] });
      await server.endConnections();
    }
    expect(server.accepted).toBe(3);
    server.script = { mail: '250 Ok' };
    expect(await outcome()).toEqual({ rejected: [] });
    // The server ends the session at the next command, before it has a message.
    let sessions = 0;
    Object.defineProperty(server.script, 'mail', {
      get: () => (sessions++ === 0 ? '421 4.4.2 Idle for too long' : '250 Ok'),
    });
    expect(await outcome()).toEqual({ rejected: [] });
    expect(server.accepted).toBe(5);
  });

  test('a refused email leaves the connection usable', async () => {
    server.script = { end: '550 5.6.0 No' };
    await outcome();
    server.script = {};
    for (let i = 0; i < 4; i++) expect(await outcome()).toEqual({ rejected: [] });
    // The refused email may still be cleared away on the first one.
    expect(server.connections).toBeLessThanOrEqual(2);
  });

  test('new credentials get new connections', async () => {
    await outcome();
    await outcome(accountOf({ user: 'other@example.com' }));
    expect(server.connections).toBe(2);
  });

  test('end with the pools, after the email that is being sent', async () => {
    server.script = { end: 'silence' };
    const controller = new AbortController();
    const result = outcome(accountOf(), mailOf(), controller.signal);
    await expect.poll(() => server.messages.length).toBe(1);
    pools.close();
    controller.abort();
    expect(await result).toEqual(unknown);
  });
});

/** A message without an end. */
function endless(): ComposedMail {
  const line = Buffer.from(`${'x'.repeat(76)}\r\n`.repeat(1_000));
  return {
    ...mailOf(),
    open: () =>
      new Readable({
        read() {
          this.push(line);
        },
      }),
  };
}

async function* failingSource(): AsyncGenerator<string> {
  yield `Subject: Hello\r\n\r\n${'x\r\n'.repeat(100_000)}`;
  throw new Error('The disk is gone.');
}
