/** No request holds the event loop: while it is served, the others are served, and the signs of life are written. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { startCrashWorld } from '../support/crashes.ts';
import { startDovecot } from '../support/dovecot.ts';
import { runProcess } from '../support/service-process.ts';
import { startSmtpServer } from '../support/smtp-server.ts';

/** A turn of the event loop may take as long, in milliseconds of the processor. */
const MOST_MS = 100;
/** The first attempts run code that V8 has not optimized yet. */
const ATTEMPTS = 4;
/** Almost the largest body that the service takes. */
const SIZE = 24_000_000;
/** Almost the longest text field of a form. */
const MOST_OF_FIELD = 10_485_000;
const TO = [{ identifier: 'bob@example.com' }];

/** A text of so many bytes in UTF-8, or a few less. */
const fill = (text: string, bytes = SIZE): string => text.repeat(bytes / Buffer.byteLength(text));
const times = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index));

const world = await startCrashWorld();
const dovecot = await startDovecot();
const smtp = await startSmtpServer({ onData: (stream, _, done) => void stream.on('end', () => done()).resume() });
const user = dovecot.user('ann@example.test');
smtp.user(user.address, user.password);
const server = { host: '127.0.0.1', encryption: 'none', user: user.address, password: user.password };
const credentials = { imap: { ...server, port: dovecot.imapPort }, smtp: { ...server, port: smtp.port } };
const preload = new URL('../support/watchdog.mjs', import.meta.url).href;
const { child, printed, ready } = runProcess(['start'], world.environment, ['--import', preload]);
const url = await ready();
let accounts = 0;

/** The longest turn since the last call, in milliseconds. */
async function longestTurn(): Promise<number> {
  const before = printed.out.length;
  child.kill('SIGUSR2');
  await expect
    .poll(() => printed.out.slice(before), { timeout: 60_000, interval: 10 })
    .toMatch(/longest turn: \d+ ms\n/);
  return Number(/longest turn: (\d+) ms/.exec(printed.out.slice(before))?.[1]);
}

/** The answer to a send from a new account, and the longest turn while it was made. */
async function send(body: (accountId: string) => RequestInit): Promise<{ status: number; ms: number }> {
  const email = await world.newEmail('imap', `${++accounts}@example.test`, credentials);
  const { headers, ...init } = body(email.account);
  const { 'content-type': _, ...own } = world.headers(email);
  await longestTurn();
  const answer = await fetch(`${url}/api/v1/emails`, { method: 'POST', headers: { ...own, ...headers }, ...init });
  await answer.text();
  return { status: answer.status, ms: await longestTurn() };
}

async function expectShortTurns(status: number, body: (accountId: string) => RequestInit): Promise<void> {
  const turns: number[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { ms, ...answer } = await send(body);
    expect(answer).toEqual({ status });
    if (ms <= MOST_MS) return;
    turns.push(ms);
  }
  throw new Error(`Each time, a turn of the event loop took longer than ${MOST_MS} ms: ${turns.join(', ')} ms`);
}

const JSON_TYPE = { 'content-type': 'application/json' };
const TRACKED = { tracking_options: { links: true, opens: true } };
const asText = (text: string) => () => ({ headers: JSON_TYPE, body: text });
const asJson = (fields: object) => (account_id: string) => ({
  headers: JSON_TYPE,
  body: JSON.stringify({ account_id, to: TO, ...fields }),
});
const asUrl = (text: string) => (account_id: string) => ({
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: `${new URLSearchParams({ account_id, to: JSON.stringify(TO) })}&${text}`,
});
const asForm =
  (fields: readonly (readonly [name: string, value: string | Blob])[], to = JSON.stringify(TO)) =>
  (account_id: string) => {
    const body = new FormData();
    body.set('account_id', account_id);
    body.set('to', to);
    for (const [name, value] of fields) body.append(name, value);
    return { body };
  };

describe('the text of an email', () => {
  test.each([
    ['short lines that end with LF', 'a\n'],
    ['short lines that end with CRLF', 'a\r\n'],
    ['short lines that end with CR', 'a\r'],
    ['empty lines', '\n'],
    ['lines of one dot', '.\n'],
  ])('%s', async (_, line) => {
    // JSON writes each line break as two characters.
    await expectShortTurns(201, asJson({ body: fill(line, SIZE / 2) }));
  });

  test.each([
    ['one line', 'a'],
    ['spaces', ' '],
    ['characters that quoted-printable encodes', '='],
    ['Latin letters with accents', 'é'],
    ['Chinese', '漢'],
    ['emoji', '😀'],
    ['escaped quotes', '"'],
    ['escaped backslashes', '\\'],
  ])('%s', async (_, character) => {
    const body = fill(character, JSON.stringify(character).length > 3 ? SIZE / 2 : SIZE);
    await expectShortTurns(201, asJson({ body: `a${body}a` }));
  });
});

describe('HTML', () => {
  test.each([
    ['the beginnings of tags', fill('<')],
    ['the beginnings of links', fill('<a ')],
    ['a tag of spaces', `<a${fill(' ')}`],
    ['a long tag', `<a${fill('b')}`],
    ['deep elements', fill('<div>')],
    ['deep tables', fill('<table><tr><td>a')],
    ['deep lists', fill('<ul><li>a')],
    ['references to characters', `<p>${fill('&amp;')}`],
  ])('%s', async (_, body) => {
    await expectShortTurns(201, asJson({ body }));
  });

  test.each([
    ['links', `<p>${fill('<a href="http://x.example/">a</a>', 320_000)}`],
    ['elements', `<p>${fill('a <b>', 4_100_000)}`],
    ['attributes', `<p ${fill('a=b ', 4_100_000)}>`],
  ])('that is tracked: %s', async (_, body) => {
    await expectShortTurns(201, asJson({ body, ...TRACKED }));
  });
});

describe('recipients and headers', () => {
  const named = { display_name: fill('é', 640) };
  test.each([
    [
      'as many recipients as an email may have',
      201,
      { to: times(500, (i) => ({ identifier: `b${i}@x.example`, ...named })) },
    ],
    ['far more of them', 422, { to: times(6_000, () => ({ identifier: 'bob' })) }],
    ['a long address', 422, { to: [{ identifier: fill('a') }] }],
    ['an address of many signs', 422, { to: [{ identifier: fill('a@') }] }],
    ['headers', 201, { custom_headers: times(100, (i) => ({ name: `X-A${i}`, value: fill('é ', 900) })) }],
    ['a long subject', 422, { subject: fill('s') }],
    ['fields that no email has', 422, Object.fromEntries(times(9_000, (i) => [`k${i}`, [1]]))],
  ])('%s', async (_, status, fields) => {
    await expectShortTurns(status, asJson({ body: 'Hi', ...fields }));
  });
});

describe('attachments', () => {
  test.each([
    ['one in JSON', 201, [randomBytes(17_000_000).toString('base64')]],
    ['a hundred in JSON', 201, times(100, () => randomBytes(170_000).toString('base64'))],
    ['one that is not base64', 422, [`${fill('a')}!`]],
  ])('%s', async (_, status, contents) => {
    const attachments = contents.map((content) => ({ filename: 'a', content }));
    await expectShortTurns(status, asJson({ body: 'Hi', attachments }));
  });

  test.each([
    ['one in a form', times(1, () => new Blob([randomBytes(SIZE)]))],
    ['a hundred in a form', times(100, () => new Blob([randomBytes(SIZE / 100)]))],
    ['one that looks like the ends of parts', [new Blob([fill('\r\n--')])]],
  ])('%s', async (_, files) => {
    await expectShortTurns(201, asForm([['body', 'Hi'], ...files.map((file) => ['attachments', file] as const)]));
  });
});

test('an HTML body that names many pictures', async () => {
  const attachments = [{ filename: 'a', content: 'aGk=' }];
  await expectShortTurns(201, asJson({ body: `<p>${fill('cid:a ')}`, attachments }));
});

describe('the body of a request', () => {
  test.each([
    ['a form whose text looks like the ends of parts', 201, asForm([['body', fill('\r\n-', MOST_OF_FIELD)]])],
    ['a form with Chinese text', 201, asForm([['body', fill('漢', MOST_OF_FIELD)]])],
    ['a form with a long list of recipients in JSON', 422, asForm([['body', 'Hi']], `["${fill('a', MOST_OF_FIELD)}"]`)],
    ['a form with a longer field', 422, asForm([['body', fill('a')]])],
    ['a form with many fields', 422, asForm(times(30_000, (i) => [`x${i}`, 'a']))],
    ['a form with deep names', 422, asForm(times(990, (i) => [`a[b][c][d]${i}`, 'a']))],
    ['a URL-encoded text of escapes', 201, asUrl(`body=${fill('%0A')}`)],
    ['a URL-encoded text of spaces', 201, asUrl(`body=a${fill('+')}`)],
    ['URL-encoded nothing', 422, asUrl(fill('&'))],
    ['URL-encoded signs', 422, asUrl(fill('='))],
    ['URL-encoded fields', 422, asUrl(fill('a=b&'))],
    ['deep arrays', 422, asText(fill('['))],
    ['deep objects', 422, asText(fill('{"a":'))],
    ['a long array', 422, asText(`[${fill('1,')}1]`)],
    ['blanks', 400, asText(fill(' '))],
    ['escapes in JSON', 422, asText(`{"body":"${fill('\\u00e9')}"}`)],
    ['line breaks in JSON', 422, asText(`{"body":"${fill('\\n')}"}`)],
  ])('%s', async (_, status, body) => {
    await expectShortTurns(status, body);
  });
});
