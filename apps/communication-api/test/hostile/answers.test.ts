import { simpleParser } from 'mailparser';
import { describe, expect, test } from 'vitest';
import { storableIds } from '../../src/journal/provider-answers.ts';
import { answerSubject, compose, referencesOf } from '../../src/mail/compose.ts';
import { GmailApi } from '../../src/providers/google/gmail-api.ts';
import { OAuthClient } from '../../src/providers/oauth/client.ts';
import { Graph } from '../../src/providers/outlook/graph.ts';
import type { Sent, SentIds } from '../../src/providers/provider.ts';
import { type Net, readText } from '../../src/security/net.ts';
import { mailAccount } from '../support/mail-account.ts';
import { secret } from '../support/secret.ts';

const MIB = 1024 * 1024;
const { signal } = new AbortController();
const credentials = { accessToken: secret(), refreshToken: secret(), expiresAt: Date.now() + 3_600_000, scope: '' };

/** A way out on which every answer has a body without end, up to a bound that no test should reach. */
function endless(): Net & { sent: number } {
  const net = {
    sent: 0,
    connect: () => Promise.reject(new Error('Not used.')),
    fetch: async () => {
      const pull = (controller: ReadableStreamDefaultController): void => {
        net.sent += MIB;
        if (net.sent > 64 * MIB) controller.close();
        else controller.enqueue(new Uint8Array(MIB).fill(32));
      };
      return new Response(new ReadableStream({ pull }), { headers: { 'content-type': 'application/json' } });
    },
  };
  return net;
}

describe('an answer without end is read to a bound', () => {
  const clientOf = (): OAuthClient =>
    new OAuthClient({ title: 'Google', issuer: 'https://id.example', clientId: 'a', clientSecret: 'b', scopes: [] });

  test('of Gmail', async () => {
    const net = endless();
    const api = new GmailApi('https://gmail.example', clientOf(), Date.now);
    const sentWithoutAnswer = (): Sent => 'unknown';
    const call = { method: 'POST', path: 'drafts/send', json: {}, sentWithoutAnswer, signal } as const;
    await expect(api.call(mailAccount('ann@example.com', credentials, { net }), call)).rejects.toMatchObject({
      sent: 'unknown',
    });
    expect(net.sent).toBeLessThan(8 * MIB);
  });

  test('of Microsoft Graph', async () => {
    const net = endless();
    const graph = new Graph(clientOf(), 'https://graph.example');
    const account = mailAccount('ann@example.com', credentials, { net });
    await expect(graph.ask(account, { method: 'GET', path: '/me' }, signal)).rejects.toThrow('The answer is too long.');
    expect(net.sent).toBeLessThan(8 * MIB);
  });

  test('of an authorization server', async () => {
    const net = endless();
    await expect(clientOf().authorizationEndpoint(net, signal)).rejects.toThrow();
    expect(net.sent).toBeLessThan(4 * MIB);
  });

  test('a text that fits is read whole', async () => {
    expect(await readText(new Response('Grüße'), 7)).toBe('Grüße');
    await expect(readText(new Response('Grüße!'), 7)).rejects.toThrow('too long');
  });
});

test.each(['1e300', '0x10', '-1', '1.5', '9999999', ''])(
  'Graph says to wait for %j: the client is told no time',
  async (text) => {
    const client = new OAuthClient({
      title: 'Outlook',
      issuer: 'https://id.example',
      clientId: 'a',
      clientSecret: 'b',
      scopes: [],
    });
    const net = {
      connect: () => Promise.reject(new Error('Not used.')),
      fetch: async () => new Response('{}', { status: 429, headers: { 'retry-after': text } }),
    };
    const account = mailAccount('ann@example.com', credentials, { net });
    const asked = new Graph(client, 'https://graph.example').ask(account, { method: 'GET', path: '/me' }, signal);
    await expect(asked).rejects.toMatchObject({ status: 429, retryAfter: undefined });
  },
);

describe('what a provider calls a sent email', () => {
  test.each<[unknown, Partial<SentIds>]>([
    [null, {}],
    [{ providerId: 5, immutableId: {}, thread: ['a'], rejected: 'bob@example.com' }, {}],
    [
      {
        providerId: 'a\0b',
        immutableId: 'x'.repeat(1_001),
        thread: 'a\r\nb',
        messageId: '<a>\r\nBcc: eve@example.com',
      },
      {},
    ],
    [
      { providerId: '\ud800', messageId: 'no brackets', rejected: [null, 'bob@example.com', 'a\0'] },
      { rejected: ['bob@example.com'] },
    ],
    [
      { providerId: 'a', immutableId: 'b', thread: 'c', messageId: '<d@example.com>', rejected: [] },
      { providerId: 'a', immutableId: 'b', thread: 'c', messageId: '<d@example.com>' },
    ],
  ])('%j is stored, or left out', (given, expected) => {
    const nothing = { providerId: null, immutableId: null, thread: null, rejected: [] };
    expect(storableIds(given as SentIds)).toEqual({ ...nothing, ...expected });
  });
});

describe('a parent that someone else has written', () => {
  const parent = {
    messageId: '<a@example.com>\r\nBcc: eve@example.com',
    references: [
      '<b@example.com>',
      '<c@example.com\r\nX-Evil: 1>',
      'evil',
      `<${'d'.repeat(600)}@example.com>`,
      '<\u00e9@example.com>',
    ],
    subject: `Hello\r\nBcc: eve@example.com\0${'x'.repeat(5_000)}`,
    thread: undefined,
  };

  test('adds no header, and nothing that is no reference', async () => {
    const composed = compose({
      ...{ messageId: '<1@example.com>', date: new Date(0), from: { address: 'ann@example.com' } },
      ...{ to: [{ address: 'bob@example.org' }], cc: [], bcc: [], subject: undefined, body: 'Hello' },
      ...{ customHeaders: [], attachments: [], parent },
    });
    const text = Buffer.concat(await composed.open({ keepBcc: true }).toArray()).toString();
    const { headers, bcc, subject } = await simpleParser(text);
    expect([bcc, headers.get('x-evil'), headers.get('in-reply-to')]).toEqual([undefined, undefined, undefined]);
    expect(headers.get('references')).toBe('<b@example.com>');
    expect(subject).toMatch(/^Re: Hello Bcc: eve@example.com x+$/);
    expect(Math.max(...text.split('\r\n').map((line) => line.length))).toBeLessThan(999);
    expect(referencesOf(parent)).toEqual(['<b@example.com>']);
    expect(answerSubject(parent.subject)?.length).toBeLessThan(1_010);
  });
});
