import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { simpleParser } from 'mailparser';
import { expect, test } from 'vitest';
import { compose } from '../../src/mail/compose.ts';
import { withContentIds } from '../../src/mail/content-ids.ts';

const ann = { address: 'ann@example.com' };
const draft = {
  ...{ messageId: '<1@example.com>', date: new Date(0), from: ann, to: [ann], cc: [], customHeaders: [] },
  ...{ bcc: [{ address: 'secret@example.com' }], subject: 'Hi', body: 'Hello' },
};

test('recipients in bcc are in the message only if its reader asks for them', async () => {
  const mail = compose({ ...draft, attachments: [] });
  expect(mail.recipients).toEqual(['ann@example.com', 'secret@example.com']);
  expect(await text(mail.open())).not.toContain('secret@example.com');
  expect(await text(mail.open({ keepBcc: true }))).toContain('Bcc: secret@example.com');
});

test('each reader gets its own parts, however often the message is read', async () => {
  const [body, trackedBody] = ['<p>plain</p>', '<p>tracked</p>'];
  const mail = compose({ ...draft, attachments: [], body, trackedBody });
  const sent = await text(mail.open());
  const copy = await text(mail.open({ keepBcc: true, untracked: true }));
  expect(sent).toContain(trackedBody);
  expect(sent).not.toContain('Bcc');
  expect(copy).toContain(body);
  expect(copy).toContain('Bcc');
  expect(copy).not.toContain(trackedBody);
  expect(await text(mail.open())).toBe(sent);
});

test('a file with a Content-ID is a related part of the HTML, and the others stand beside it', async () => {
  const attachments = ['logo.png', 'report.pdf', 'notes.txt'].map((filename) => ({
    ...{ filename, contentType: filename === 'logo.png' ? 'image/png' : 'application/octet-stream' },
    file: {
      size: 1,
      open: () => Readable.from(['x']),
      close: async () => undefined,
      hold: () => async () => undefined,
    },
  }));
  const body = '<p><img src="cid:logo.png"> <a href="cid:notes.txt">Notes</a></p>';
  const mail = compose({ ...draft, body, attachments: withContentIds(attachments, body) });
  const message = await text(mail.open());
  const types = [...message.matchAll(/^Content-Type: ([\w/-]+)/gim)].map(([, type]) => type);
  expect(types).toEqual([
    ...['multipart/mixed', 'multipart/alternative', 'text/plain', 'multipart/related', 'text/html'],
    ...['image/png', 'application/octet-stream', 'application/octet-stream'],
  ]);
  const parsed = await simpleParser(message, { skipImageLinks: true });
  const shown = parsed.attachments.map(({ filename, cid, contentDisposition, related = false }) => ({
    ...{ filename, cid, contentDisposition, related },
  }));
  expect(shown).toEqual([
    { filename: 'logo.png', cid: 'logo.png', contentDisposition: 'inline', related: true },
    { filename: 'notes.txt', cid: 'notes.txt', contentDisposition: 'attachment', related: true },
    { filename: 'report.pdf', cid: undefined, contentDisposition: 'attachment', related: false },
  ]);
  expect(parsed.html).toBe(body);
  expect(await text(mail.open({ withoutAttachments: true }))).not.toContain('multipart/related');
});

test('a file is shown only by its whole name, once, and only if every mail program understands the name', () => {
  const shownIn = (html: string, ...filenames: string[]): (string | undefined)[] => {
    const file = {
      size: 1,
      open: () => Readable.from([]),
      close: async () => undefined,
      hold: () => async () => undefined,
    };
    const attachments = filenames.map((filename) => ({ filename, contentType: 'image/png', file }));
    return withContentIds(attachments, html).map(({ contentId }) => contentId);
  };
  expect(shownIn('<img src="cid:a.png">', 'a.png', 'a.png', 'A.png', 'a', 'a.png.png')).toEqual([
    ...['a.png', undefined, undefined, undefined, undefined],
  ]);
  expect(shownIn("<td style='background: url(cid:a-1_b+c@d.example)'>", 'a-1_b+c@d.example')).toEqual([
    'a-1_b+c@d.example',
  ]);
  expect(shownIn('<img src="cid:a%2Bb%40c"><img src=cid:50%>', 'a+b@c', '50%')).toEqual(['a+b@c', undefined]);
  expect(shownIn('<img src="cid:a b.png"><img src="cid:ä.png">', 'a b.png', 'ä.png')).toEqual([undefined, undefined]);
  expect(shownIn('a.png <img src="a.png">', 'a.png')).toEqual([undefined]);
  expect(shownIn(`${'<img src="cid:x">'.repeat(100_000)}<img src="cid:a.png">`, 'x', 'a.png')).toEqual([
    'x',
    undefined,
  ]);
});

test('the files of a message are not read on if its reader leaves', async () => {
  const opened: Readable[] = [];
  const open = (): Readable => {
    const file = new Readable({ read: () => void file.push(Buffer.alloc(65_536)) });
    opened.push(file);
    return file;
  };
  const file = { size: 1, open, close: async () => undefined, hold: () => async () => undefined };
  const mail = compose({ ...draft, attachments: [{ filename: 'a', contentType: 'text/plain', file }] });
  const stream = mail.open();
  await once(stream, 'readable');
  stream.destroy();
  await once(stream, 'close');
  expect(opened.map(({ destroyed }) => destroyed)).toEqual([true]);
});
