import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { GRACE_MS } from '../../src/journal/sender.ts';
import { Sweeper } from '../../src/journal/sweeper.ts';
import { linkAccount } from '../support/accounts.ts';
import { type Answer, clientOf } from '../support/client.ts';
import { type Fault, faultsAt, someFaultsAt } from '../support/fault.ts';
import { startImapFaultProxy, startSmtpFaultProxy } from '../support/mail-fault-proxy.ts';
import { type SinkUser, startMailSink } from '../support/mail-sink.ts';
import { startService } from '../support/service.ts';
import { startSmtpServer } from '../support/smtp-server.ts';

/** The deadline of tests that wait for it. */
const SHORT_MS = 5_000;
/** The deadline of the others: a slow machine does not come to it. */
const LONG_MS = 20_000;
/** More than all buffers between the service and the proxy hold. */
const LARGE = 24_000_000;

// Most of these tests wait for a deadline.
vi.setConfig({ maxConcurrency: 16 });

let late = 0;
const clock = (): number => Date.now() + late;
const sink = await startMailSink();

async function start(timeoutMs: number) {
  const service = await startService({ SEND_TIMEOUT_MS: String(timeoutMs), APPEND_MAX_BYTES: '0' }, { clock });
  const application = await service.application();
  return { service, application, client: clientOf(service.url, application.token), timeoutMs };
}
const [patient, impatient] = [await start(LONG_MS), await start(SHORT_MS)];

/** A new user whose connections go through proxies, of which one has the fault, and how it sends one email. */
async function linked({ kind }: Fault, taken?: (message: string, user: SinkUser) => Promise<unknown>) {
  const { service, application, client, timeoutMs } = kind === 'stall' ? impatient : patient;
  const user = sink.user(taken);
  const [smtp, imap] = [await startSmtpFaultProxy(sink.smtpPort), await startImapFaultProxy(sink.dovecot.imapPort)];
  const account = await linkAccount(service.rooms, application.id, {
    ...{ provider: 'imap', providerUserId: user.address, name: user.address },
    secret: { credentials: user.credentials({ smtp: smtp.port, imap: imap.port }) },
  });
  const key = randomUUID();
  const send = async (attached?: Uint8Array<ArrayBuffer>): Promise<Answer> => {
    const form = new FormData();
    form.set('account_id', account.id);
    form.set('to', JSON.stringify([{ identifier: 'bob@example.com' }]));
    form.set('body', 'Hello');
    if (attached !== undefined) form.append('attachments', new Blob([attached]), 'a.bin');
    const headers = { 'x-api-key': application.token, 'idempotency-key': key };
    const answer = await fetch(`${service.url}/api/v1/emails`, { method: 'POST', headers, body: form });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text) };
  };
  const stored = async () => (await client('GET', `/v2/emails?idempotency_key=${key}`)).body;
  return { service, application, timeoutMs, user, account, smtp, imap, send, stored };
}

const UNKNOWN = { status: 504, body: { type: 'errors/request_timeout' } };
const NOT_SENT_AGAIN = { status: 409, body: { type: 'errors/conflict' } };

/** As a client does that tries again, until the answer is final. */
async function retried(send: () => Promise<Answer>): Promise<Answer> {
  let answer = await send();
  for (let retries = 0; retries < 3 && answer.status !== 201 && answer.status !== 409; retries++) answer = await send();
  return answer;
}

// The groups wait for the deadline at the same time.
describe.concurrent('before the end of the message, a fault never makes the outcome unknown: the retry sends', () => {
  const STEPS = ['connect', 'EHLO', 'AUTH', 'MAIL', 'RCPT', 'DATA'] as const;

  test.concurrent.for(faultsAt(STEPS))('$name', async ({ step, fault }) => {
    const { user, smtp, send, stored } = await linked(fault);
    smtp.failNext(step, fault);
    const first = await send();
    expect(smtp.hasFailed).toBe(true);
    if (first.status !== 201) {
      // It has no row: it was certainly not sent.
      expect(await stored()).toMatchObject({ status: 404 });
      expect(user.received).toEqual([]);
    }
    expect(await retried(send)).toMatchObject({ status: 201 });
    expect(await stored()).toMatchObject({ state: 'sent', provider_id: first.body.provider_id ?? expect.any(String) });
    expect(user.received).toHaveLength(1);
  });
});

describe.concurrent('between the end of the message and its reply, the outcome is unknown: no retry sends again', () => {
  const CASES = faultsAt(['end'] as const);

  test.concurrent.for(CASES)('$name', async ({ fault }) => {
    const { user, smtp, send, stored } = await linked(fault);
    smtp.failNext('end', fault);
    expect(await send()).toMatchObject(UNKNOWN);
    expect(await send()).toMatchObject(NOT_SENT_AGAIN);
    expect(await send()).toMatchObject(NOT_SENT_AGAIN);
    expect(await stored()).toMatchObject({ state: 'unknown' });
    expect(user.received).toHaveLength(fault.phase === 'after' ? 1 : 0);
  });

  test.concurrent.for(CASES.filter(({ fault }) => fault.phase === 'after'))(
    '$name: the retry finds the email if the Sent folder shows it',
    async ({ fault }) => {
      const { user, smtp, send, stored } = await linked(fault, (message, { file }) => file(message));
      smtp.failNext('end', fault);
      expect(await send()).toMatchObject(UNKNOWN);
      const found = await send();
      const [copy] = user.sentFolder();
      expect(found).toMatchObject({ status: 201, body: { object: 'EmailSent' } });
      expect(copy).toContain(found.body.provider_id);
      expect(await stored()).toMatchObject({ state: 'sent', provider_id: found.body.provider_id });
      expect(user.received).toHaveLength(1);
    },
  );
});

describe.concurrent('the look into the Sent folder fails, too: the retry after it finds the email', () => {
  const STEPS = ['connect', 'AUTHENTICATE', 'LIST', 'SELECT', 'SEARCH'] as const;

  test.concurrent.for(someFaultsAt(STEPS))('$name', async ({ step, fault }) => {
    const { user, smtp, imap, send } = await linked(fault, (message, { file }) => file(message));
    smtp.failNext('end', { phase: 'after', kind: 'cut' });
    expect(await send()).toMatchObject(UNKNOWN);
    imap.failNext(step, fault);
    expect(await retried(send)).toMatchObject({ status: 201 });
    expect(imap.hasFailed).toBe(true);
    expect(user.received).toHaveLength(1);
    expect(user.sentFolder()).toHaveLength(1);
  });
});

describe.concurrent('the copy in the Sent folder is filed once', () => {
  const STEPS = ['connect', 'AUTHENTICATE', 'LIST', 'SELECT', 'SEARCH', 'APPEND'] as const;

  test.concurrent.for(someFaultsAt(STEPS))('$name', async ({ step, fault }) => {
    const { service, timeoutMs, user, account, imap } = await linked(fault);
    const messageId = `<${randomUUID()}@example.test>`;
    const message = Buffer.from(`Message-ID: ${messageId}\r\n\r\n${'Hello\r\n'.repeat(2_000)}`);
    const open = () => Readable.from([message]);
    const copy = { messageId, sentAt: new Date(), measure: async () => ({ size: message.length, open }) };
    const provider = service.rooms.providers.find('imap')?.mail;
    const file = () =>
      provider?.fileCopy?.(copy, service.rooms.mailAccounts.of(account), AbortSignal.timeout(timeoutMs));
    imap.failNext(step, fault);
    await expect(file()).rejects.toThrow();
    expect(imap.hasFailed).toBe(true);
    const wasFiled = step === 'APPEND' && fault.phase === 'after';
    expect(await file()).toBe(wasFiled ? 'found' : 'filed');
    expect(user.sentFolder()).toHaveLength(1);
    expect(user.sentFolder()[0]?.replaceAll('\r\n', '\n')).toBe(message.toString().replaceAll('\r\n', '\n'));
  });
});

describe('in the middle of a large message, too', () => {
  // A smaller message is written to its end before the fault can be noticed.
  test.for(faultsAt(['body'] as const).filter(({ fault }) => fault.phase === 'in'))('$name', async ({ fault }) => {
    const { user, smtp, send, stored } = await linked(fault);
    smtp.failNext('body', fault);
    expect((await send(new Uint8Array(LARGE))).status).not.toBe(201);
    expect(smtp.hasFailed).toBe(true);
    // The next attempt may send.
    expect(await stored()).toMatchObject({ status: 404 });
    expect(user.received).toEqual([]);
  });
});

describe('the mark is set just before the end of the message', () => {
  /** An email that a server takes, which calls `during` at each step. */
  async function emailThrough(during: (step: 'MAIL' | 'RCPT' | 'DATA' | 'end', key: string) => Promise<unknown>) {
    const { service, application } = patient;
    const key = randomUUID();
    let received = 0;
    const smtp = await startSmtpServer({
      onMailFrom: (_, __, done) => void during('MAIL', key).then(() => done(), done),
      onRcptTo: (_, __, done) => void during('RCPT', key).then(() => done(), done),
      onData(stream, _, done) {
        stream.once('data', () => stream.pause() && void during('DATA', key).then(() => stream.resume(), done));
        // A message that is cut short ends in an error.
        stream
          .on('error', () => undefined)
          .on('end', () => {
            received++;
            during('end', key).then(() => done(), done);
          });
      },
    });
    const user = sink.user();
    smtp.user(user.address, user.password);
    const account = await linkAccount(service.rooms, application.id, {
      ...{ provider: 'imap', providerUserId: user.address, name: user.address },
      secret: { credentials: user.credentials({ smtp: smtp.port }) },
    });
    const row = () => service.rooms.sends.records.byClaim(application.id, key);
    const send = async (bytes: number) => {
      const form = new FormData();
      form.set('account_id', account.id);
      form.set('to', JSON.stringify([{ identifier: 'bob@example.com' }]));
      form.set('body', 'Hello');
      form.append('attachments', new Blob([new Uint8Array(bytes)]), 'a.bin');
      const headers = { 'x-api-key': application.token, 'idempotency-key': key };
      return fetch(`${service.url}/api/v1/emails`, { method: 'POST', headers, body: form });
    };
    return { row, send, received: () => received };
  }

  test('until the server has everything but the end, a crash would leave nothing unknown', async () => {
    const states: [string, string | undefined][] = [];
    const { row, send } = await emailThrough(async (step) => states.push([step, (await row())?.state]));
    expect((await send(LARGE)).status).toBe(201);
    expect(states).toEqual([
      ['MAIL', undefined],
      ['RCPT', undefined],
      ['DATA', undefined],
      ['end', 'dispatched'],
    ]);
  });

  test.each(['RCPT', 'DATA'] as const)('an attempt that loses its claim at %s never ends the message', async (at) => {
    const { service, application } = patient;
    const { row, send, received } = await emailThrough(async (step, key) => {
      if (step !== at) return;
      // As another process does that takes this one for dead.
      await service.rooms.idempotency.release({ scope: application.id, key }, { force: true });
    });
    const answer = await send(at === 'DATA' ? LARGE : 1);
    expect([answer.status, await answer.json()]).toMatchObject([409, { type: 'errors/conflict' }]);
    expect(received()).toBe(0);
    expect(await row()).toBe(undefined);
  });
});

test('an unknown outcome is resolved by the sweeper as soon as the Sent folder shows the email', async () => {
  const emails = await Promise.all(
    faultsAt(['end'] as const)
      // The test above shows that an email whose reply stalls is unknown, too.
      .filter(({ fault }) => fault.phase === 'after' && (NIGHTLY || fault.kind !== 'stall'))
      .map(async ({ fault }) => {
        const email = await linked(fault);
        email.smtp.failNext('end', fault);
        expect(await email.send()).toMatchObject(UNKNOWN);
        expect(await email.send()).toMatchObject(NOT_SENT_AGAIN);
        return email;
      }),
  );
  late += LONG_MS + GRACE_MS + 1;
  await sweep();
  for (const { stored } of emails) expect(await stored()).toMatchObject({ state: 'unknown', provider_id: null });
  for (const { user } of emails) await user.file(user.received[0] ?? '');
  await sweep();
  for (const { user, send, stored } of emails) {
    const email = await stored();
    expect(email).toMatchObject({ state: 'sent', provider_id: email.message_id });
    expect(await send()).toMatchObject({ status: 201, body: { provider_id: email.message_id } });
    expect(user.received).toHaveLength(1);
  }
});

async function sweep(): Promise<void> {
  const log = pino({ level: 'silent' });
  for (const { service, timeoutMs } of [patient, impatient])
    await new Sweeper({ ...service.rooms, log, timeoutMs }).sweep();
}
