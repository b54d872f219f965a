import { expect, test } from 'vitest';
import { readHead, readMessage } from '../../src/mail/read-message.ts';

const related = (html: string, picture: Buffer): Buffer =>
  Buffer.from(
    [
      ...['Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=', 'From: Shop <shop@example.com>', 'X-Long: a', ' b'],
      ...['Content-Type: multipart/related; boundary=x', '', '--x', 'Content-Type: text/html', '', html],
      ...['--x', 'Content-Type: image/png', 'Content-ID: <p>', 'Content-Transfer-Encoding: base64', ''],
      ...[picture.toString('base64').replace(/.{76}/g, '$&\r\n'), '--x--', ''],
    ].join('\r\n'),
  );

test('the head is decoded, and its fields are unfolded', async () => {
  const raw = related('<p>Hi</p>', Buffer.from('png'));
  const head = { subject: 'Grüße', from: '"Shop" <shop@example.com>' };
  expect(await readHead(raw.subarray(0, 140))).toMatchObject(head);
  const { headers, text, html } = await readMessage(raw, 'linked');
  expect(headers.slice(0, 3)).toEqual([
    { name: 'Subject', value: '=?utf-8?Q?Gr=C3=BC=C3=9Fe?=' },
    { name: 'From', value: 'Shop <shop@example.com>' },
    { name: 'X-Long', value: 'a b' },
  ]);
  expect([text, html?.trim()]).toEqual([null, '<p>Hi</p>']);
});

test('pictures are embedded on request, up to a bound', async () => {
  const raw = related('<img src="cid:p"><img src="cid:q">', Buffer.from('png'));
  expect((await readMessage(raw, 'linked')).html).toContain('<img src="cid:p">');
  expect((await readMessage(raw, 'embedded')).html).toContain(
    '<img src="data:image/png;base64,cG5n"><img src="cid:q">',
  );
  const { html = '' } = await readMessage(related('<img src="cid:p">'.repeat(7_000), Buffer.alloc(60_000)), 'embedded');
  expect(html?.length).toBeLessThan(5_000_000);
  expect(html).toMatch(/data:image\/png.*cid:p/s);
});

test('of a message that is cut off, the part that is there is read', async () => {
  const raw = related('<p>Hi</p>', Buffer.alloc(1_000));
  expect((await readMessage(raw.subarray(0, raw.length - 700), 'embedded')).html?.trim()).toBe('<p>Hi</p>');
  expect(await readMessage(Buffer.from('Subject: S'), 'embedded')).toMatchObject({ subject: 'S', html: null });
  expect(await readMessage(Buffer.alloc(0), 'embedded')).toMatchObject({ subject: null, text: null, attachments: [] });
});
