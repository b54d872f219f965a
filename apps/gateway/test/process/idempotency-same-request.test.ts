/** I2 and I3: which requests are the same. A false match loses an e-mail, a false mismatch costs a 409. */
import { gzipSync } from 'node:zlib';
import { field, file, multipart, multipartType, type WrittenPart } from 'headgate-testbed/bodies';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem, NO_RATES, ratesOf } from '../support/gateway.ts';
import {
  BODY,
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  type Mail,
  MESSAGES,
  OPEN,
  post,
  postChunked,
} from '../support/keyed.ts';

const { upstream, gateway } = await gatewayForFile(keyedConfig);

const SECRETS = ['ann@example.com', 'Hello', 'stored-secret', 'acc_1'];

async function expectSame(first: Mail, second: Mail) {
  const key = freshKey();
  const original = await post(gateway, key, first);
  expectOriginal(original);
  expectReplay(await post(gateway, key, second), original);
  expect(callsOf(upstream, key)).toHaveLength(1);
}

/** The second request is refused with a matching detail, and the key still replays the first. */
async function expectDifferent(first: Mail, second: Mail, words: RegExp = /body/) {
  const key = freshKey();
  const original = await post(gateway, key, first);
  expectOriginal(original);
  const refused = await post(gateway, key, second);
  const { detail } = expectProblem(refused, 409, 'errors/already_used');
  expect(detail).toMatch(words);
  for (const secret of SECRETS) expect(detail).not.toContain(secret);
  expect(ratesOf(refused)).toEqual(NO_RATES);
  expect(refused.headers['idempotency-replayed']).toBeUndefined();
  expectReplay(await post(gateway, key, first), original);
  expect(callsOf(upstream, key)).toHaveLength(1);
}

describe('I2: another request with the same key is 409 errors/already_used, which says what differs', () => {
  it.each<[string, Mail, Mail, RegExp]>([
    ['path', { path: OPEN }, { path: '/api/v1/impatient' }, /path/],
    ['query', { path: `${MESSAGES}&note=stored-secret` }, { path: MESSAGES }, /query/],
    [
      'query, in another order',
      { path: `${MESSAGES}&x=1` },
      { path: '/api/v1/messages?x=1&account_id=acc_1' },
      /query/,
    ],
    ['query, present but empty', { path: OPEN }, { path: `${OPEN}?` }, /query/],
    ['method', { path: MESSAGES }, { path: MESSAGES, method: 'PUT' }, /method/],
    [
      'account',
      { path: '/api/v1/drafts', headers: { 'x-account-id': 'acc_1' } },
      { path: '/api/v1/drafts', headers: { 'x-account-id': 'acc_2' } },
      /account/,
    ],
    ['content type', {}, { type: 'text/plain' }, /type/],
    ['a parameter of the content type', {}, { type: 'application/json; charset=utf-8' }, /type/],
    ['no content type', {}, { type: undefined }, /type/],
    ['body', {}, { body: '{"to":"ann@example.com","subject":"Hello!"}' }, /subject|body/],
    ['no body', {}, { body: '' }, /body/],
  ])('%s', async (_title, first, second, words) => {
    await expectDifferent(first, second, words);
  });

  it('other headers do not count', async () => {
    await expectSame({}, { headers: { 'user-agent': 'retrier/2', 'x-trace': '7', accept: '*/*', cookie: 'a=b' } });
  });

  it('a content type given twice is refused, because two readers could disagree on it', async () => {
    const key = freshKey();
    const reply = await post(gateway, key, { headers: { 'content-type': ['application/json', 'text/plain'] } });
    expectProblem(reply, 400, 'errors/malformed_request');
    expect(callsOf(upstream, key)).toHaveLength(0);
  });

  it('an encoded body counts by its bytes', async () => {
    const headers = { 'content-encoding': 'gzip' };
    await expectSame({ headers, body: gzipSync('{"a":1}') }, { headers, body: gzipSync('{"a":1}') });
    await expectDifferent({ headers, body: gzipSync('{"a":1}') }, { headers, body: gzipSync('{"a": 1}') });
    await expectDifferent({ headers, body: BODY }, {}, /type|body/);
  });

  it('the framing does not count', async () => {
    const key = freshKey();
    expectOriginal(await post(gateway, key));
    const chunked = await postChunked(gateway, key, [BODY.slice(0, 10), BODY.slice(10)]);
    expect(chunked.headers['idempotency-replayed']).toBe('true');
  });

  it('a mismatch charges nothing', async () => {
    const key = freshKey();
    const path = '/api/v1/messages?account_id=acc_7';
    expect(ratesOf(await post(gateway, key, { path })).remaining).toBe(999);
    expectProblem(await post(gateway, key, { path, body: '1' }), 409, 'errors/already_used');
    expect(ratesOf(await post(gateway, freshKey(), { path })).remaining).toBe(998);
  });
});

describe('I3: JSON', () => {
  it.each([
    ['white space', '{"a":[1,2],"b":"x"}', '{ "a" : [ 1,\n2 ],\t"b":"x" }\r\n'],
    ['the order of names', '{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}'],
    ['a duplicate name, the same bytes', '{"a":1,"a":2}', '{"a":1,"a":2}'],
    ['malformed, the same bytes', '{"a":', '{"a":'],
  ])('the same: %s', (_title, first, second) => expectSame({ body: first }, { body: second }));

  it.each([
    ['1.0 and 1', '{"n":1.0}', '{"n":1}'],
    ['1e2 and 100', '{"n":1e2}', '{"n":100}'],
    ['integers that doubles merge', '{"n":9007199254740993}', '{"n":9007199254740992}'],
    ['1 and "1"', '{"n":1}', '{"n":"1"}'],
    ['null and nothing', '{"n":null}', '{}'],
    ['the order of elements', '[1,2]', '[2,1]'],
    ['an escape and its character', '{"s":"\\u0061"}', '{"s":"a"}'],
    ['a duplicate name, other white space', '{"a":1,"a":2}', '{"a":1, "a":2}'],
    ['a duplicate name, one of them', '{"a":1,"a":2}', '{"a":2}'],
    ['white space in a string', '{"s":"a b"}', '{"s":"a  b"}'],
  ])('different: %s', (_title, first, second) => expectDifferent({ body: first }, { body: second }, /body|n|s|a/));
});

describe('I3: forms', () => {
  const type = 'application/x-www-form-urlencoded';

  it.each([
    ['+ and %20', 'subject=a+b&to=c', 'subject=a%20b&to=c'],
    ['an unnecessary escape', 'to=a', 't%6f=%61'],
    ['upper and lower hex', 'to=%c3%a9', 'to=%C3%A9'],
  ])('the same: %s', (_title, first, second) => expectSame({ type, body: first }, { type, body: second }));

  it.each([
    ['a value', 'to=a', 'to=b'],
    ['bytes that are not text', 'to=%ff', 'to=%fe'],
    ['an encoded +', 'to=a%2Bb', 'to=a+b'],
    ['the order of one name', 'to=a&to=b', 'to=b&to=a'],
    ['a separator that is data', 'to=a&b=c', 'to=a%26b=c'],
  ])('different: %s', (_title, first, second) =>
    expectDifferent({ type, body: first }, { type, body: second }, /to|body|field/),
  );
});

describe('I3: multipart', () => {
  const parts = [
    field('to', 'ann@example.com'),
    file('attachments', 'Zürich – 報告.pdf', Buffer.from([0, 255, 13, 10, 45, 45]), 'application/pdf'),
    file('attachments', 'b.txt', 'stored-secret'),
  ] as const;
  const [to, first, second] = parts;
  const mail = (boundary: string, these: readonly WrittenPart[], rest = {}): Mail => ({
    type: multipartType(boundary),
    body: multipart({ boundary, parts: these, ...rest }),
  });
  const base = mail('one', parts);

  it.each<[string, Mail]>([
    ['another boundary', mail('----another', parts)],
    ['a boundary in quotes', { ...mail('a b', parts), type: 'multipart/form-data; boundary="a b"' }],
    ['the order of two names', mail('two', [first, second, to])],
    ['preamble and epilogue', mail('two', parts, { preamble: 'Hi\r\n', epilogue: '\r\nbye' })],
    ["the order of a part's headers", mail('two', [to, first, { ...second, headers: [...second.headers].reverse() }])],
    [
      "the case of a part's header names",
      mail('two', [
        to,
        first,
        { ...second, headers: second.headers.map((h) => String(h).replace(/^[^:]+/, (n) => n.toLowerCase())) },
      ]),
    ],
  ])('the same: %s', (_title, other) => expectSame(base, other));

  it.each<[string, Mail, RegExp]>([
    ['the order of one name', mail('two', [to, second, first]), /attachments/],
    ['one byte of content', mail('two', [to, first, { ...second, content: 'stored-secreT' }]), /attachments\[1\]/],
    [
      'a file name',
      mail('two', [to, file('attachments', 'Zürich – 報吿.pdf', first.content, 'application/pdf'), second]),
      /attachments\[0\]/,
    ],
    [
      'a type',
      mail('two', [to, file('attachments', 'Zürich – 報告.pdf', first.content, 'image/png'), second]),
      /attachments\[0\]/,
    ],
    ['a name', mail('two', [field('cc', 'ann@example.com'), first, second]), /field|body/],
    ['one more part', mail('two', [...parts, field('bcc', 'x')]), /field|body/],
    ['one part less', mail('two', [to, first]), /attachments|field|body/],
    ['a field instead of a file', mail('two', [to, first, field('attachments', 'stored-secret')]), /attachments/],
  ])('different: %s', (_title, other, words) => expectDifferent(base, other, words));

  it('malformed: 422 before anything is claimed', async () => {
    const key = freshKey();
    const body = Buffer.from('--one\r\nContent-Disposition: form-data; name="to"\r\n\r\nann');
    const broken = await post(gateway, key, { type: multipartType('one'), body });
    expectProblem(broken, 422, 'errors/unprocessable_entity');
    expect(callsOf(upstream, key)).toHaveLength(0);
    expectOriginal(await post(gateway, key, base));
  });
});

describe('I3: other bodies, by their bytes', () => {
  it('the same bytes, for any bytes', async () => {
    const body = Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256));
    await expectSame({ type: 'application/octet-stream', body }, { type: 'application/octet-stream', body });
    await expectSame({ type: undefined, body }, { type: undefined, body });
  });

  it.each([
    ['text that differs in white space', 'text/plain', 'a b', 'a  b'],
    ['JSON with another media type', 'text/json', '{"a":1}', '{ "a":1}'],
    ['bytes that decode to the same text', 'text/plain', Buffer.from([0xff]), Buffer.from([0xfe])],
  ])('different: %s', (_title, type, first, second) => expectDifferent({ type, body: first }, { type, body: second }));
});
