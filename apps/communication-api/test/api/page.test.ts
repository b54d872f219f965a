/** The examples of apps/communication-api/docs/api.md, in their order: each request is sent, and each answer compared. */
import { expect, test } from 'vitest';
import { inDays } from '../support/client.ts';
import { servicePage } from '../support/deploy-files.ts';
import { startService } from '../support/service.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
/** An id or a token, of which the page shows the beginning. */
const NAMES = /(?<![0-9A-Za-z])([a-z]{3}_[0-9a-z]{26}|ck_[a-z]{3}_[a-z]+_[0-9A-Za-z]{49})/g;

const page = servicePage('api.md');
const examples = [...page.matchAll(/^```http\n([\s\S]*?)^```/gm)].map(([, text = '']) => text);
const [, redirection = ''] = /^```text\n(https:.*)\n```/m.exec(page) ?? [];

const service = await startService();
const { token } = await service.application();
/** The newest id or token of each kind, by its beginning. */
const newest = new Map<string, string>();

function remember(text: string): void {
  for (const [name] of text.matchAll(NAMES)) newest.set(name.slice(0, name.lastIndexOf('_') + 1), name);
}

/** The request of a page, with a time to come and the ids of this run. */
const filled = (text: string): string =>
  text.replace(TIME, inDays(1)).replace(/((?:[a-z]+_)+)…/g, (whole, start: string) => newest.get(start) ?? whole);

/** Whether a text is as on the page, where `…` is for anything and each time for any other. */
function fits(text: string, wanted: string): boolean {
  const pattern = wanted
    .split(/(…|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/)
    .map((part, i) => (i % 2 === 0 ? part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') : part === '…' ? '.+' : TIME.source));
  return new RegExp(`^${pattern.join('')}$`).test(text);
}

/** The value of the page if the other one fits it, else the other one: so a comparison shows what differs. */
function asOnPage(value: unknown, wanted: unknown): unknown {
  if (typeof value === 'string' && typeof wanted === 'string') return fits(value, wanted) ? wanted : value;
  if (Array.isArray(value))
    return value.map((each, i) => asOnPage(each, Array.isArray(wanted) ? wanted[i] : undefined));
  if (value === null || typeof value !== 'object') return value;
  const fields = (wanted ?? {}) as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, asOnPage(each, fields[name])]));
}

/** Head and body of a message. */
function parts(message: string): { readonly first: string; readonly headers: [string, string][]; body: string } {
  const [head = '', ...body] = message.trim().split('\n\n');
  const [first = '', ...lines] = head.split('\n');
  const headers = lines.map(
    (line) => [line.split(': ')[0] ?? '', line.slice(line.indexOf(': ') + 2)] as [string, string],
  );
  return { first, headers, body: body.join('\n\n') };
}

test.each(examples.map((text, i) => [i + 1, text.split('\n')[0], text] as const))(
  'example %i: %s',
  async (_, __, text) => {
    newest.set('ck_svc_dev_', token);
    const [asked = '', answered = ''] = text.split(/^(?=HTTP\/1\.1)/m);
    const request = parts(filled(asked));
    const wanted = parts(answered);
    const [method = '', path = ''] = request.first.split(' ');
    const body = request.body === '' ? null : request.body;
    const answer = await fetch(service.url + path, { method, headers: request.headers, body });
    const received = await answer.text();
    remember(received);
    expect(`HTTP/1.1 ${answer.status} ${answer.statusText}: ${received}`).toContain(wanted.first);
    for (const [name, value] of wanted.headers) expect(asOnPage(answer.headers.get(name), value), name).toBe(value);
    expect(asOnPage(JSON.parse(received), JSON.parse(wanted.body))).toEqual(JSON.parse(wanted.body));
    if (path === '/v2/auth/link') await link((JSON.parse(received) as { link: string }).link);
  },
);

/** What the user does. */
async function link(address: string): Promise<void> {
  const browser = new PlainBrowser(service.url);
  await browser.open(new URL(address).pathname);
  const callback = await browser.submit('/step/login', { address: 'ann@mock.test', password: 'a', drafts: 'on' });
  remember(callback ?? '');
  expect(asOnPage(callback, redirection)).toBe(redirection);
}
