import { until } from 'headgate-testbed/redis-server';
import { beforeAll, describe, expect, test } from 'vitest';
import { type CrashWorld, DIRECT_STEPS, EVERY_STEP, type Fleet, startCrashWorld } from '../support/crashes.ts';
import { type Google, startGoogle } from '../support/google.ts';
import { type MailSink, type SinkUser, startMailSink } from '../support/mail-sink.ts';
import { type Microsoft, startMicrosoft } from '../support/microsoft.ts';

const google: Google = await startGoogle();
const microsoft: Microsoft = await startMicrosoft();
const sink: MailSink = await startMailSink();
let world: CrashWorld;
let fleet: Fleet;
let users = 0;

beforeAll(async () => {
  world = await startCrashWorld({ ...google.environment, ...microsoft.environment });
  fleet = await world.fleet();
});

const SENT = { status: 201, body: { object: 'EmailSent' } };
const NOT_SENT_AGAIN = { status: 409, body: { type: 'errors/conflict' } };

describe.concurrent('a process that is killed: the retry sends a draft once', () => {
  test.each(EVERY_STEP)('google, at "%s"', async (step) => {
    const address = `user${++users}@gmail.example`;
    google.addUser(address);
    const email = await world.newEmail('google', address, await google.credentials(address));
    await world.sendUntil(fleet, email, step, 'SIGKILL');
    expect(await world.retry(fleet, email)).toMatchObject(SENT);
    expect(await world.retry(fleet, email)).toMatchObject(SENT);
    expect(google.sent(address)).toHaveLength(1);
    // A draft that no row names stays behind, unsent.
    expect(google.drafts(address)).toBe(step === 'drafted' ? 1 : 0);
  });

  test.each(EVERY_STEP)('outlook, at "%s"', async (step) => {
    const user = microsoft.user();
    const email = await world.newEmail('outlook', user.email, microsoft.credentialsOf(user));
    await world.sendUntil(fleet, email, step, 'SIGKILL');
    expect(await world.retry(fleet, email)).toMatchObject(SENT);
    expect(await world.retry(fleet, email)).toMatchObject(SENT);
    expect(user.mailbox.delivered).toHaveLength(1);
    expect(user.mailbox.drafts).toHaveLength(step === 'drafted' ? 1 : 0);
  });
});

describe.concurrent('a process that is killed: no email goes out twice by SMTP', () => {
  const filing = (message: string, { file }: SinkUser): Promise<void> => file(message);
  const emailOf = (user: SinkUser) => world.newEmail('imap', user.address, user.credentials());

  test.each(DIRECT_STEPS)('with a server that files what it sends, at "%s"', async (step) => {
    const user = sink.user(filing);
    const email = await emailOf(user);
    await world.sendUntil(fleet, email, step, 'SIGKILL');
    // What happened between the mark and the reply of the server is not known, and the Sent folder shows nothing.
    const isSent = step !== 'dispatched';
    expect(await world.retry(fleet, email)).toMatchObject(isSent ? SENT : NOT_SENT_AGAIN);
    expect(user.received).toHaveLength(isSent ? 1 : 0);
    expect(user.sentFolder()).toHaveLength(isSent ? 1 : 0);
  });

  test('with a server that files nothing, after its reply: it is not sent again', async () => {
    const user = sink.user();
    const email = await emailOf(user);
    await world.sendUntil(fleet, email, 'sent', 'SIGKILL');
    expect(await world.retry(fleet, email)).toMatchObject(NOT_SENT_AGAIN);
    expect(user.received).toHaveLength(1);
    // As soon as the folder shows the email, the outcome is known.
    await user.file(user.received[0] ?? '');
    expect(await world.retry(fleet, email)).toMatchObject(SENT);
    expect(user.received).toHaveLength(1);
  });

  test('after the send was written down: another process files the copy, once', async () => {
    const user = sink.user();
    const email = await emailOf(user);
    await world.sendUntil(fleet, email, 'settled', 'SIGKILL');
    expect(await world.retry(fleet, email)).toMatchObject(SENT);
    // The process may have taken the job before it died: then the job is its own until the deadline of the job is over.
    await until(() => user.sentFolder().length > 0, 'the copy is filed', 100_000);
    expect(user.sentFolder()).toHaveLength(1);
    expect(user.received).toHaveLength(1);
  });

  test.each([
    { name: 'files what it sends', taken: filing, isFound: true },
    { name: 'files nothing', taken: undefined, isFound: false },
  ])('between the end of the message and its reply, with a server that $name', async ({ taken, isFound }) => {
    const process = await world.start(fleet);
    const user = sink.user(async (message, self) => {
      await taken?.(message, self);
      process.child.kill('SIGKILL');
      await process.ended;
    });
    const email = await emailOf(user);
    await expect(world.send(process.url, email)).rejects.toThrow();
    expect(await world.retry(fleet, email)).toMatchObject(isFound ? SENT : NOT_SENT_AGAIN);
    expect(user.received).toHaveLength(1);
  });
});
