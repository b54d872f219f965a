import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { type Answer, clientOf } from '../support/client.ts';
import { faultsAt } from '../support/fault.ts';
import { startHttpFaultProxy } from '../support/http-fault-proxy.ts';
import { startMicrosoft } from '../support/microsoft.ts';
import { startService } from '../support/service.ts';

const microsoft = await startMicrosoft();
const graph = await startHttpFaultProxy(new URL(microsoft.graph.url).origin);
const service = await startService({
  ...microsoft.environment,
  MICROSOFT_API_URL: `${graph.url}/v1.0`,
  SEND_TIMEOUT_MS: '4000',
});
const application = await service.application();
const client = clientOf(service.url, application.token);

/** Each request to Graph of a send, by its method and the end of its path. */
const CALLS = {
  'the draft': ['POST', /\/me\/messages$/],
  'a small file': ['POST', /\/attachments$/],
  'the address for a large file': ['POST', /\/createUploadSession$/],
  'a piece of a large file': ['PUT', /^\/upload\//],
  'the sender': ['PATCH', /\/me\/messages\/[^/]+$/],
  'the look before the send': ['GET', /\/me\/messages\/[^/]+$/],
  'the look after the send': ['GET', /\/me\/messages\/[^/]+$/],
  'the send': ['POST', /\/send$/],
  'the ids': ['POST', /\/translateExchangeIds$/],
} as const satisfies Record<string, readonly [string, RegExp]>;
type Call = keyof typeof CALLS;

/** More than Graph takes with the message, so files are added to the draft. From 3 MiB on, in pieces. */
const SIZES: { readonly [Each in Call]?: number } = {
  'a small file': 3_010_000,
  'the address for a large file': 3_200_000,
  'a piece of a large file': 3_200_000,
};
let users = 0;

const TRANSIENT = /^errors\/(?:network_down|request_timeout|service_unavailable|provider_error)$/;

/** A new user, and how one email of it is sent. */
async function linked(call: Call) {
  const user = microsoft.user();
  user.mailbox.sendAs.add('alias@outlook.test');
  const credentials = microsoft.credentialsOf(user);
  const account = await linkAccount(service.rooms, application.id, {
    ...{ provider: 'outlook', providerUserId: user.oid, name: user.email },
    secret: { credentials },
  });
  const key = { 'idempotency-key': randomUUID() };
  const size = SIZES[call] === undefined ? 0 : SIZES[call] + ++users;
  const attachments = size === 0 ? [] : [{ filename: 'a.bin', content: Buffer.alloc(size, 'a').toString('base64') }];
  const body = {
    ...{ account_id: account.id, to: [{ identifier: 'ann@example.com' }], body: 'Hello', attachments },
    ...(call === 'the sender' ? { from: { identifier: 'alias@outlook.test' } } : {}),
  };
  const send = (): Promise<Answer> => client('POST', '/api/v1/emails', body, key);
  const isOwn = (headers: IncomingHttpHeaders): boolean =>
    headers.authorization === `Bearer ${credentials.accessToken}` ||
    // A piece of a file takes no access token. No two files have the same size.
    (size > 0 && headers['content-range']?.endsWith(`/${size}`) === true);
  return { user, files: attachments.length, isOwn, send };
}

/** As a client does that tries again, until the email is sent. */
async function retried(send: () => Promise<Answer>): Promise<readonly Answer[]> {
  const answers = [await send()];
  while (answers.length < 5 && answers.at(-1)?.status !== 201) answers.push(await send());
  return answers;
}

describe('an email is sent once, whatever happens to one request to Graph', () => {
  test.concurrent.for(faultsAt(Object.keys(CALLS) as Call[]))('$name', async ({ step, fault }) => {
    const { user, files, isOwn, send } = await linked(step);
    const [method, path] = CALLS[step];
    let others = step === 'the look after the send' ? 1 : 0;
    const hasFailed = graph.failNext(
      (call) => call.method === method && path.test(call.path) && isOwn(call.headers) && others-- === 0,
      fault,
    );
    const answers = await retried(send);
    expect(hasFailed()).toBe(true);
    expect(answers.at(-1)).toMatchObject({ status: 201, body: { object: 'EmailSent' } });
    for (const { body } of answers.slice(0, -1)) expect(body.type).toMatch(TRANSIENT);
    expect(user.mailbox.delivered).toHaveLength(1);
    expect(user.mailbox.delivered[0]?.attached).toHaveLength(files);
  });
});
