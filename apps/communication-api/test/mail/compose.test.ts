import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { compose } from '../../src/mail/compose.ts';

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
