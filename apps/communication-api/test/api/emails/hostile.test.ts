import fc from 'fast-check';
import { simpleParser } from 'mailparser';
import { expect, test } from 'vitest';
import { type MailClient, mailClient, multipart, type Part, part } from '../../support/mail-client.ts';
import { startService } from '../../support/service.ts';

const service = await startService();
const application = await service.application();
let current = await mailClient(service, application);
let used = 0;
/** An account has ten sends a minute. */
const client = async (): Promise<MailClient> => {
  if (++used % 10 === 0) current = await mailClient(service, application);
  return current;
};
const problem = (detail?: string, type = 'errors/unprocessable_entity') => ({
  status: 422,
  json: { status: 422, type, ...(detail && { detail: expect.stringContaining(detail) }) },
});

const wild = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)), maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom(
      'a',
      ' ',
      '"',
      '\\',
      '<',
      '>',
      '@',
      ',',
      ';',
      ':',
      '=',
      '?',
      '_',
      '(',
      ')',
      'é',
      '😀',
      '\u202e',
      '\t',
    ),
    maxLength: 60,
  }),
  fc.constantFrom(
    'a\r\nBcc: x@example.com',
    'a\nX-Evil: 1',
    '\0',
    'a\u2028b',
    '\ud800',
    '=?utf-8?Q?a=0D=0AX-Evil:_1?=',
    'x'.repeat(990),
    '"'.repeat(320),
    `${'é'.repeat(300)}`,
    '  spaces   inside  ',
    'undisclosed: a@example.com;',
    '-',
  ),
);

const HEADERS = ['content-type', 'date', 'from', 'message-id', 'mime-version', 'subject', 'to', 'x-wild'];
/** How a reader unfolds and trims a header. */
const read = (text: string | undefined): string | undefined => text?.replace(/\s+/g, ' ').trim();

/** The parser leaves headers that it does not know encoded. */
const decoded = async (value: unknown): Promise<string> =>
  (await simpleParser(`Subject: ${String(value)}\r\n\r\n`)).subject ?? '';

test('any text in any field is refused by its name, or arrives as it was sent, with no other header', async () => {
  const request = fc.record({
    name: wild,
    from: wild,
    subject: wild,
    header: wild,
    label: wild,
    filename: wild,
    body: wild,
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ name, from, subject, header, label, filename, body }) => {
      const { json, newest } = await client();
      const answer = await json({
        to: [{ identifier: 'ann@example.com', display_name: name }],
        from: { display_name: from },
        subject,
        body,
        custom_headers: [
          { name: 'X-Wild', value: header },
          { name: 'Content-Type', value: 'text/plain' },
        ],
        tracking_options: { label },
        attachments: [{ filename, content: 'aGk=' }],
      });
      if (answer.status !== 201) {
        expect(answer).toMatchObject({ status: 422 });
        expect(answer.json.detail).toMatch(
          /^(to\[0\]\.display_name|from\.display_name|subject|body|custom_headers\[0\]\.(name|value)|tracking_options\.label|attachments\[0\]\.filename): /,
        );
        return;
      }
      const { mail, raw } = await newest();
      const lines = raw.slice(0, raw.indexOf('\r\n\r\n')).split('\r\n');
      for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(998);
      const names = lines.filter((line) => !/^\s/.test(line)).map((line) => line.split(':', 1)[0]?.toLowerCase());
      expect(names.sort()).toEqual(HEADERS.filter((each) => each !== 'subject' || subject.trim() !== ''));
      expect(read(mail.subject ?? '')).toBe(read(subject));
      expect(read(mail.from?.value[0]?.name)).toBe(read(from));
      expect(mail.to).toMatchObject({
        value: [{ address: 'ann@example.com', name: expect.toSatisfy((got) => read(got) === read(name)) }],
      });
      expect(read(await decoded(mail.headers.get('x-wild')))).toBe(read(header));
      expect(mail.attachments).toHaveLength(1);
      expect(read(mail.attachments[0]?.filename ?? '')).toBe(read(filename));
      expect(mail.text?.replace(/\r\n?/g, '\n').trim() ?? '').toBe(body.replace(/\r\n?/g, '\n').trim());
    }),
    { numRuns: 120 },
  );
});

test('any value in the place of any other is accepted or refused by its name, and never an internal error', async () => {
  const valid = {
    to: [{ identifier: 'ann@example.com', display_name: 'Ann' }],
    cc: [],
    from: { display_name: 'Me' },
    subject: 'S',
    body: 'B',
    reply_to: 'mock-1',
    custom_headers: [{ name: 'X-A', value: 'b' }],
    tracking_options: { opens: true, links: false, label: 'l', custom_domain: 'd' },
    attachments: [{ filename: 'a', content_type: 'text/plain', content: 'aGk=' }],
  };
  const paths = pathsOf({ account_id: 'x', ...valid });
  const value = fc.oneof(
    { weight: 3, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('\0', '__proto__', '=', 'a'.repeat(2_000), 1e308, -0, [[]], { __proto__: null }, [
        null,
      ]),
    },
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), value, async (path, other) => {
      const { json, raw, fields } = await client();
      const whole = structuredClone({ account_id: fields.account_id, ...valid }) as Record<string, unknown>;
      const answer =
        path.length === 0
          ? await raw('application/json', JSON.stringify(other))
          : await json(replaced(whole, path, other) as object);
      expect({ path, other, status: answer.status }).toMatchObject({
        status: expect.toSatisfy((s) => [201, 404, 422].includes(s)),
      });
      if (answer.status === 422 && path.length > 0)
        expect(answer.json.detail).toMatch(new RegExp(`^(${String(path[0])}|reply_to|unknown field)\\b`));
    }),
    { numRuns: 250 },
  );
});

function pathsOf(value: unknown, path: readonly PropertyKey[] = []): (readonly PropertyKey[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, each]) => pathsOf(each, [...path, key]))];
}

function replaced(value: unknown, [key, ...rest]: readonly PropertyKey[], other: unknown): unknown {
  if (key === undefined) return other;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<PropertyKey, unknown>;
  copy[key] = replaced(copy[key], rest, other);
  return copy;
}

test('addresses are read strictly', async () => {
  const { json } = await client();
  const bad = [
    '',
    '@',
    'a',
    'a@',
    '@b.c',
    'a@b',
    'a b@example.com',
    '"a b"@example.com',
    'a@example.com (comment)',
    'a(c)@example.com',
    'Ann <a@example.com>',
    '<a@example.com>',
    'a@[127.0.0.1]',
    'a@127.0.0.1',
    'a@0x7f.1',
    'a@2130706433',
    'a@[IPv6:::1]',
    'a@b@example.com',
    'a,b@example.com',
    'a@example.com,b@example.com',
    'a@example.com\r\nBcc: b@example.com',
    'a\0@example.com',
    '.a@example.com',
    'a.@example.com',
    'a..b@example.com',
    'a@-b.com',
    'a@b-.com',
    'a@b..com',
    'a@.com',
    'a@example.com.',
    'a@exa mple.com',
    'a@ex%61mple.com',
    'a@example.com/x',
    'a@example.com:25',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b'.repeat(64)}.com`,
    `a@${'b.'.repeat(130)}com`,
    'a\u202e@example.com',
    'a@xn--a.com',
    'mailto:a@example.com',
    'a@b_c.com',
    '\ud800@example.com',
  ];
  for (const identifier of bad) {
    const answer = await json({
      to: [{ identifier: 'ann@example.com' }],
      cc: [{ identifier: 'ann@example.com' }, { identifier }],
    });
    expect({ identifier, ...answer }).toMatchObject(problem('cc[1].identifier', 'errors/invalid_recipient'));
  }
  const good = {
    "a.b+c!#$%&'*/=?^_`{|}~-@example.com": "a.b+c!#$%&'*/=?^_`{|}~-@example.com",
    'Ann@BÜCHER.example': 'Ann@xn--bcher-kva.example',
    'ann@EXAMPLE。com': 'ann@example.com',
    'jörg@bücher.example': 'jörg@xn--bcher-kva.example',
    [`${'a'.repeat(64)}@example.com`]: `${'a'.repeat(64)}@example.com`,
  };
  const other = await mailClient(service, application);
  for (const [identifier, expected] of Object.entries(good)) {
    expect({ identifier, ...(await other.json({ to: [{ identifier }] })) }).toMatchObject({ status: 201 });
    const { recipients, raw } = await other.newest();
    expect(recipients).toEqual([expected]);
    expect(raw.match(/^To:/gm)).toHaveLength(1);
  }
});

test('custom headers: which names, which values, and one of each', async () => {
  const { json } = await mailClient(service, application);
  const header = (name: string, value = 'v') => json({ custom_headers: [{ name, value }] });
  const badNames = [
    'X-',
    'X',
    'Subject',
    'Bcc',
    'To',
    'Content-Transfer-Encoding',
    'X-A:',
    'X-A b',
    'X-é',
    'X-A\r\nBcc',
    'X-Google-Foo',
    'x-gm-raw',
    'X-MS-Exchange-Organization',
    'List-Id',
    ' X-A',
    'X-A ',
    'Reply-To ',
  ];
  for (const name of badNames)
    expect({ name, ...(await header(name)) }).toMatchObject(
      problem('custom_headers[0].name', 'errors/invalid_headers'),
    );
  for (const value of ['', '  ', 'a\r\nb', 'a\nb', '\0', '\u007f', '=?utf-8?q?x?='])
    expect({ value, ...(await header('X-A', value)) }).toMatchObject(
      problem('custom_headers[0]', 'errors/invalid_headers'),
    );
  for (const value of ['x', 'a@example.com, x', 'group: a@example.com;', ',', 'a@[127.0.0.1]'])
    expect({ value, ...(await header('Reply-To', value)) }).toMatchObject(
      problem('custom_headers[0]', 'errors/invalid_headers'),
    );
  const twice = [
    { name: 'X-A', value: '1' },
    { name: 'x-a', value: '2' },
  ];
  expect(await json({ custom_headers: twice })).toMatchObject(
    problem('custom_headers[1].name', 'errors/invalid_headers'),
  );
  const sender = await mailClient(service, application);
  const custom_headers = [
    { name: 'Reply-To', value: '"Ann, B" <ann@Bücher.example>, bob@example.com' },
    { name: 'List-Unsubscribe', value: '<https://example.com/u?a=1>, <mailto:u@example.com>' },
    { name: 'list-unsubscribe-post', value: 'List-Unsubscribe=One-Click' },
    { name: 'x-cUsTom', value: 'é "quoted" \\ value' },
  ];
  expect(await sender.json({ custom_headers })).toMatchObject({ status: 201 });
  const { mail, raw } = await sender.newest();
  expect(mail.replyTo?.value).toEqual([
    { address: 'ann@bücher.example', name: 'Ann, B' },
    { address: 'bob@example.com', name: '' },
  ]);
  expect(raw).toMatch(/^List-Unsubscribe: <https:\/\/example.com\/u\?a=1>,\s+<mailto:u@example.com>/m);
  expect(await decoded(mail.headers.get('x-custom'))).toBe('é "quoted" \\ value');
});

test('bounds: recipients, headers, attachments, and bytes of a header line', async () => {
  const { json, form, accountId } = await mailClient(service, application);
  const boxes = (count: number) => Array.from({ length: count }, (_, i) => ({ identifier: `a${i}@example.com` }));
  const headers = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `X-${i}`, value: 'v' }));
  const files = (count: number) => Array.from({ length: count }, () => ({ filename: 'a', content: '' }));
  expect(await json({ to: boxes(250), cc: boxes(250), bcc: boxes(1) })).toMatchObject(problem('500'));
  expect(await json({ to: boxes(498), cc: boxes(1), bcc: boxes(1) })).toMatchObject({ status: 201 });
  expect(await json({ to: [] })).toMatchObject(problem('to'));
  expect(await json({ custom_headers: headers(101) })).toMatchObject(problem('custom_headers'));
  expect(await json({ custom_headers: headers(100) })).toMatchObject({ status: 201 });
  expect(await json({ attachments: files(101) })).toMatchObject(problem('attachments'));
  expect(await json({ attachments: files(100) })).toMatchObject({ status: 201 });
  const parts = [part('account_id', accountId), part('to', { identifier: 'ann@example.com' }), part('body', 'Hi')];
  const fileParts = (count: number): Part[] =>
    Array.from({ length: count }, () => ({ name: 'attachments', value: 'x', filename: 'a' }));
  expect(await form([...parts, ...fileParts(101)])).toMatchObject(problem('attachments'));
  expect(await form([...parts, ...fileParts(100)])).toMatchObject({ status: 201 });
  for (const [bytes, status] of [
    [998, 201],
    [999, 422],
  ] as const) {
    expect({ bytes, ...(await json({ subject: 's'.repeat(bytes - 'Subject: '.length) })) }).toMatchObject({ status });
    const value = 'v'.repeat(bytes - 'X-A: '.length);
    expect({ bytes, ...(await json({ custom_headers: [{ name: 'X-A', value }] })) }).toMatchObject({ status });
  }
  expect(await json({ subject: 'é'.repeat(495) })).toMatchObject(problem('subject'));
});

test('large bodies of many small pieces are refused', async () => {
  const { raw, form, accountId, fields } = await mailClient(service, application);
  const many = 100_000;
  const bodies: [string, string][] = [
    ['application/x-www-form-urlencoded', 'a=b&'.repeat(many)],
    ['application/x-www-form-urlencoded', '&'.repeat(20_000_000)],
    ['application/x-www-form-urlencoded', 'a[]'.repeat(5_000_000)],
    [
      'multipart/form-data; boundary=b',
      `${'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'.repeat(many)}--b--`,
    ],
    ['application/json', `{"account_id":"${accountId}","to":[${'{},'.repeat(3_000_000)}{}]}`],
    ['application/json', `{"to":${'['.repeat(1_000_000)}`],
    ['application/json', `{${Array.from({ length: many }, (_, i) => `"a${i}":1`).join()}}`],
    ['application/json', `"${'\\"'.repeat(5_000_000)}"`],
  ];
  for (const [type, body] of bodies) {
    const answer = await raw(type, body);
    expect({ start: body.slice(0, 20), ...answer }).toMatchObject({ status: 422 });
  }
  const rest = [part('account_id', accountId), part('body', 'Hi')];
  expect(await form([...rest, part('to', `[${'{},'.repeat(3_000_000)}{}]`)])).toMatchObject(problem('values'));
  expect(await form([...rest, part('to', '['.repeat(1_000_000))])).toMatchObject(problem());
  for (const body of [
    '<b>'.repeat(500_000),
    '<'.repeat(1_000_000),
    `<a ${'x'.repeat(1_000_000)}`,
    '<p>\n'.repeat(200_000),
  ])
    expect({
      body: body.slice(0, 9),
      ...(await raw('application/json', JSON.stringify({ ...fields, body }))),
    }).toMatchObject({ status: 201 });
  const content = Buffer.alloc(15_000_000).toString('base64');
  expect(
    await raw('application/json', JSON.stringify({ ...fields, attachments: [{ filename: 'a', content }] })),
  ).toMatchObject({ status: 201 });
  expect(
    await raw(
      'application/json',
      JSON.stringify({ ...fields, attachments: [{ filename: 'a', content: `${content}*` }] }),
    ),
  ).toMatchObject(problem('attachments[0].content'));
});

test('a malformed multipart body is refused, whatever is wrong with it', async () => {
  const { raw, accountId, delivered } = await mailClient(service, application);
  const good = multipart([
    part('account_id', accountId),
    part('to', { identifier: 'ann@example.com' }),
    part('body', 'Hi'),
  ]).toString();
  const withPart = (head: string, value = 'x') => good.replace('--b1--', `--b1\r\n${head}\r\n\r\n${value}\r\n--b1--`);
  const send = (body: string, type = 'multipart/form-data; boundary=b1') => raw(type, body);
  const bad = {
    'no end': good.slice(0, -8),
    'cut in a header': `${good.slice(0, -4)}\r\nContent-Disp`,
    empty: '',
    'only the end': '--b1--\r\n',
    'no boundary in it': 'hello',
    'another boundary': good.replaceAll('b1', 'b2'),
    'a part without headers': withPart(''),
    'a part without a name': withPart('Content-Disposition: form-data'),
    'a file without a name': withPart('Content-Disposition: form-data; filename="a"'),
    'a part that is not form-data': withPart('Content-Disposition: attachment; name="attachments"; filename="a"'),
    'a part with another header only': withPart('Content-Type: text/plain'),
    'a name with a line break': withPart('Content-Disposition: form-data; name="attach\nments"; filename="a"'),
    'a file name with an encoded line break': withPart(
      "Content-Disposition: form-data; name=attachments; filename*=utf-8''a%0d%0ab",
    ),
    'huge headers': withPart(`Content-Disposition: form-data; name="subject"\r\nX: ${'x'.repeat(20_000)}`),
    'a header without a colon': withPart('Content-Disposition form-data; name="subject"'),
    nested: withPart(
      'Content-Disposition: form-data; name="attachments"\r\nContent-Type: multipart/mixed; boundary=b3',
      '--b3\r\nContent-Disposition: file; filename="a"\r\n\r\nx\r\n--b3--',
    ),
    'a file in base64': withPart(
      'Content-Disposition: form-data; name="attachments"; filename="a"\r\nContent-Transfer-Encoding: base64',
      'aGk=',
    ),
    'too many parts': withPart('Content-Disposition: form-data; name="cc"', '[]').replace(
      '--b1--',
      `${'--b1\r\nContent-Disposition: form-data; name="cc"\r\n\r\n[]\r\n'.repeat(1_001)}--b1--`,
    ),
  };
  for (const [fault, body] of Object.entries(bad)) {
    const { status, json } = await send(body);
    expect({ fault, status, ...json }).toMatchObject({ fault, status: 422, detail: expect.any(String) });
  }
  for (const type of [
    `multipart/form-data; boundary=${'b'.repeat(5_000)}`,
    'multipart/form-data; boundary=b2; boundary=b1',
    'multipart/form-data; xboundary=b1',
  ])
    expect({ type, status: (await send(good, type)).status }).toEqual({ type, status: 422 });
  expect(await delivered()).toBe(0);
  const twoDispositions = withPart(
    'Content-Disposition: form-data; name="subject"\r\nContent-Disposition: form-data; name="reply_to"',
    'Hello',
  );
  expect((await send(twoDispositions)).status).toSatisfy((status) => status === 201 || status === 422);
});

test('names of files in a form are decoded, and stay names', async () => {
  const { raw, accountId, newest } = await mailClient(service, application);
  const good = multipart([
    part('account_id', accountId),
    part('to', { identifier: 'ann@example.com' }),
    part('body', 'Hi'),
  ]).toString();
  const names: [string, string][] = [
    ['filename="ä.txt"', 'ä.txt'],
    ["filename*=utf-8''%C3%A4.txt", 'ä.txt'],
    ["filename*=iso-8859-1''%E4.txt", 'ä.txt'],
    ['filename="../../etc/passwd"', 'passwd'],
    ['filename="C:\\\\a\\\\b.txt"', 'b.txt'],
    ['filename="a\\"b.txt"', 'a"b.txt'],
    ['filename=""', 'attachment'],
  ];
  for (const [parameter, expected] of names) {
    const body = good.replace(
      '--b1--',
      `--b1\r\nContent-Disposition: form-data; name="attachments"; ${parameter}\r\nContent-Type: text/plain; name="evil"\r\n\r\nx\r\n--b1--`,
    );
    expect({ parameter, ...(await raw('multipart/form-data; boundary=b1', body)) }).toMatchObject({ status: 201 });
    expect({ parameter, name: (await newest()).mail.attachments[0]?.filename }).toEqual({ parameter, name: expected });
    expect((await newest()).raw).not.toContain('evil');
  }
});
