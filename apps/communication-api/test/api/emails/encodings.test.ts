import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { type MailClient, mailClient, type Part, part } from '../../support/mail-client.ts';
import { startService } from '../../support/service.ts';

const service = await startService();
const application = await service.application();
const client = (): Promise<MailClient> => mailClient(service, application);

const ANN = { identifier: 'ann@example.com', display_name: 'Ann' };
const BOB = { identifier: 'bob@example.com' };
const FILE: Part = { name: 'attachments', value: 'hello', filename: 'a.txt', type: 'text/plain' };

test('objects in a form may be one JSON array, one JSON object per part, or brackets', async () => {
  const { accountId, form, newest } = await client();
  const rest = [part('account_id', accountId), part('body', 'Hi')];
  const header = { name: 'X-Tag', value: 'a b' };
  const encodings: Part[][] = [
    [part('to', [ANN, BOB]), part('custom_headers', [header]), part('tracking_options', { opens: false, label: 'x' })],
    [part('to', ANN), part('to', BOB), part('custom_headers', header), part('tracking_options', { label: 'x' })],
    [part('to[]', ANN), part('to[]', BOB), part('custom_headers[]', header), part('tracking_options[opens]', 'false')],
    [
      part('to[0][identifier]', ANN.identifier),
      part('to[0][display_name]', ANN.display_name),
      part('to[1][identifier]', BOB.identifier),
      part('custom_headers[0][name]', header.name),
      part('custom_headers[0][value]', header.value),
      part('tracking_options[label]', 'x'),
    ],
    [part('to[0]', ANN), part('to[1]', BOB), part('custom_headers[0]', header)],
  ];
  for (const parts of encodings) {
    expect(await form([...rest, ...parts])).toMatchObject({ status: 201 });
    const { mail, recipients } = await newest();
    expect(mail.to).toMatchObject({ text: '"Ann" <ann@example.com>, bob@example.com' });
    expect(mail.headers.get('x-tag')).toBe('a b');
    expect(recipients).toEqual(['ann@example.com', 'bob@example.com']);
  }
});

test('JSON that a browser sends as a blob is a field, and no other file is', async () => {
  const { accountId, form, newest } = await client();
  const rest = [part('account_id', accountId), part('body', 'Hi')];
  const blob = (name: string, type: string): Part => ({ ...part(name, [ANN]), filename: 'blob', type });
  expect(await form([...rest, blob('to', 'application/json')])).toMatchObject({ status: 201 });
  expect((await newest()).recipients).toEqual([ANN.identifier]);
  expect(await form([...rest, blob('to', 'text/plain')])).toMatchObject({ status: 422 });
  const file = { ...blob('attachments', 'application/json'), value: '{}' };
  expect(await form([...rest, part('to', [ANN]), file])).toMatchObject({ status: 201 });
  expect((await newest()).mail.attachments.map(({ filename }) => filename)).toEqual(['blob']);
});

test('one field in two encodings is refused and named', async () => {
  const { accountId, form, delivered } = await client();
  const rest = [part('account_id', accountId), part('body', 'Hi')];
  const twoWays: Part[][] = [
    [part('to', [ANN]), part('to[0][identifier]', BOB.identifier)],
    [part('to[0][identifier]', BOB.identifier), part('to', [ANN])],
    [part('to', [ANN]), part('to', BOB)],
    [part('to', [ANN]), part('to[]', [BOB])],
    [part('to', [ANN]), part('to[1]', BOB)],
  ];
  for (const parts of twoWays) {
    const { status, json } = await form([...rest, ...parts]);
    expect({ status, ...json }).toMatchObject({
      status: 422,
      type: 'errors/unprocessable_entity',
      detail: expect.stringMatching(/^to: /),
    });
  }
  const options = [part('tracking_options', { opens: true }), part('tracking_options[links]', 'true')];
  const { json } = await form([...rest, part('to', ANN), ...options]);
  expect(json).toMatchObject({ status: 422, detail: expect.stringMatching(/^tracking_options: /) });
  expect(await delivered()).toBe(0);
});

test('the parts of a form may come in any order, files before fields', async () => {
  const { accountId, form, newest } = await client();
  const parts = [
    FILE,
    part('body', '<p>Hi</p>'),
    { ...FILE, filename: 'b.txt' },
    part('to', [ANN]),
    part('subject', 'S'),
  ];
  for (const order of [
    [...parts, part('account_id', accountId)],
    [part('account_id', accountId), ...parts.reverse()],
  ]) {
    expect(await form(order)).toMatchObject({ status: 201 });
    const { mail } = await newest();
    expect(mail.attachments.map(({ filename, content }) => [filename, content.toString()]).sort()).toEqual([
      ['a.txt', 'hello'],
      ['b.txt', 'hello'],
    ]);
    expect(mail.subject).toBe('S');
  }
});

test('a file with any bytes arrives as it was sent, whatever its size and type', async () => {
  const { accountId, form, json, newest } = await client();
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7 + (i >> 8)) & 0xff));
  const rest = [part('account_id', accountId), part('body', 'Hi'), part('to', ANN)];
  for (const [type, value] of [
    ['application/octet-stream', bytes],
    ['text/plain', 'a\nb\r\nc\r'],
    ['message/rfc822', 'Subject: x\r\n\r\n\0'],
    ['multipart/mixed; boundary=x', '--x\r\n\r\nhidden\r\n--x--'],
    ['text/html', ''],
  ] as const) {
    expect(await form([...rest, { name: 'attachments', value, filename: 'ä 1.bin', type }])).toMatchObject({
      status: 201,
    });
    const viaForm = await newest();
    expect(viaForm.mail.attachments.map(({ filename, content }) => [filename, content])).toEqual([
      ['ä 1.bin', Buffer.from(value)],
    ]);
    const content = Buffer.from(value).toString('base64');
    expect(await json({ attachments: [{ filename: 'c.bin', content_type: type, content }] })).toMatchObject({
      status: 201,
    });
    expect((await newest()).mail.attachments.map(({ content: got }) => got)).toEqual([Buffer.from(value)]);
  }
});

test('a picture that the HTML shows by its name is an inline part, whatever the encoding of the request', async () => {
  const { accountId, form, json, newest } = await client();
  const body = '<p><img src="cid:logo.png"></p>';
  const logo = { name: 'attachments', value: 'a picture', filename: 'logo.png', type: 'image/png' };
  const rest = [part('account_id', accountId), part('body', body), part('to', ANN), FILE, logo];
  const attachments = [
    { filename: 'a.txt', content_type: 'text/plain', content: Buffer.from('hello').toString('base64') },
    { filename: 'logo.png', content_type: 'image/png', content: Buffer.from('a picture').toString('base64') },
  ];
  const plain = { name: 'Content-Type', value: 'text/plain' };
  for (const [send, isInline] of [
    [() => form(rest), true],
    [() => json({ body, attachments }), true],
    [() => json({ body, attachments, tracking_options: { opens: true, links: true } }), true],
    [() => json({ body, attachments, custom_headers: [plain] }), false],
    [() => json({ body: '<p><img src="cid:other.png"></p>', attachments }), false],
  ] as const) {
    expect(await send()).toMatchObject({ status: 201 });
    const { mail } = await newest();
    expect(mail.attachments.map(({ filename, cid, related }) => [filename, cid, related]).sort()).toEqual([
      ['a.txt', undefined, undefined],
      isInline ? ['logo.png', 'logo.png', true] : ['logo.png', undefined, undefined],
    ]);
  }
});

test('a URL-encoded form and JSON are read as the same request', async () => {
  const { accountId, raw, json, newest } = await client();
  const form = new URLSearchParams({
    account_id: accountId,
    to: JSON.stringify([ANN]),
    body: 'Hé&=+ %',
    subject: '?a=b',
  });
  expect(await raw('application/x-www-form-urlencoded', form.toString())).toMatchObject({ status: 201 });
  const first = await newest();
  expect(await json({ to: [ANN], body: 'Hé&=+ %', subject: '?a=b' })).toMatchObject({ status: 201 });
  const second = await newest();
  expect([first.mail.text, first.mail.subject]).toEqual([second.mail.text, second.mail.subject]);
  expect(first.mail.text?.trim()).toBe('Hé&=+ %');
  const brackets = `?x&account_id=${accountId}&body=a&to[0][identifier]=a@example.com`;
  expect((await raw('application/x-www-form-urlencoded', brackets)).json.detail).toContain('"?x"');
});

test('a repeated account_id is refused, and never is one account checked and another one used', async () => {
  const { accountId, form, raw, delivered } = await client();
  const other = await client();
  const stranger = await mailClient(service, await service.application());
  const rest = [part('body', 'Hi'), part('to', ANN)];
  for (const second of [other.accountId, stranger.accountId, accountId])
    for (const names of [
      ['account_id', 'account_id'],
      ['account_id', 'account_id[]'],
      ['account_id[]', 'account_id[]'],
      ['account_id', 'account_id[0]'],
      ['account_id', 'account_id[x]'],
    ] as const) {
      const { status, json } = await form([part(names[0], accountId), part(names[1], second), ...rest]);
      expect({ names, status, ...json }).toMatchObject({ status: 422, detail: expect.stringMatching(/^account_id: /) });
      const body = new URLSearchParams([
        [names[0], accountId],
        [names[1], second],
        ['body', 'Hi'],
        ['to', JSON.stringify(ANN)],
      ]);
      expect(await raw('application/x-www-form-urlencoded', body.toString())).toMatchObject({ status: 422 });
    }
  for (const name of ['account_id[0]', 'account_id[x]', '[account_id]', 'account_id ', 'Account_id'])
    expect(await form([part(name, accountId), ...rest])).toMatchObject({ status: 422 });
  expect(await form([part('account_id[]', stranger.accountId), ...rest])).toMatchObject({ status: 404 });
  expect(await form([part('account_id', JSON.stringify([accountId])), ...rest])).toMatchObject({ status: 404 });
  const twice = `{"account_id":${JSON.stringify(stranger.accountId)},"account_id":${JSON.stringify(accountId)},"body":"Hi","to":[${JSON.stringify(ANN)}]}`;
  const before = await delivered();
  expect(await raw('application/json', twice)).toMatchObject({ status: 201 });
  expect([await delivered(), await stranger.delivered(), await other.delivered()]).toEqual([before + 1, 0, 0]);
});

test('an unknown field is refused, so that a misspelt one does not change the email', async () => {
  const { accountId, form, json, fields } = await client();
  const rest = [part('account_id', accountId), part('body', 'Hi'), part('to', ANN)];
  for (const name of [
    'atachments',
    '__proto__',
    'constructor',
    'toString',
    'to[0][__proto__]',
    'a[b][c][d][e][f][g]',
    'x'.repeat(300),
    '',
    'to[',
    '\u202ex',
  ])
    expect({ name, ...(await form([...rest, part(name, 'x')])) }).toMatchObject({ status: 422 });
  expect((await form([...rest, { ...FILE, name: 'atachments' }])).json.detail).toContain('"atachments"');
  expect(await form([...rest, { ...FILE, name: 'body' }])).toMatchObject({ status: 422 });
  expect((await json({ atachments: [] })).json.detail).toBe('unknown field "atachments"');
  expect(await json({ to: [{ ...ANN, name: 'x' }] })).toMatchObject({
    json: { detail: 'to[0]: unknown field "name"', status: 422 },
  });
  await expect(
    (await client()).raw('application/json', `${JSON.stringify(fields).slice(0, -1)},"__proto__":{"subject":"x"}}`),
  ).resolves.toMatchObject({ status: 422 });
});

test('another encoding of the body, or none, is refused', async () => {
  const { raw, fields } = await client();
  const text = JSON.stringify(fields);
  expect(await raw('application/json', gzipSync(text), { 'content-encoding': 'gzip' })).toMatchObject({
    status: 422,
    json: { detail: expect.stringContaining('Content-Encoding') },
  });
  expect(await raw('application/json', gzipSync(text))).toMatchObject({ status: 400 });
  expect(await raw('application/json', Buffer.from([0x22, 0xff, 0x22]))).toMatchObject({ status: 400 });
  for (const type of [
    'application/xml',
    'multipart/mixed; boundary=b',
    'text/plain',
    'multipart/form-data',
    'multipart/form-data; boundary=',
  ])
    expect({ type, ...(await raw(type, text)) }).toMatchObject({ status: 422 });
});
