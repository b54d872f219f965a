import fc from 'fast-check';
import MailComposer from 'nodemailer/lib/mail-composer';
import { expect, test } from 'vitest';
import { textMessage } from '../../src/mail/text-message.ts';

const line = fc.string({
  unit: fc.constantFrom('a', ' ', '=', '.', '\t', '\r\n', '\n', 'é', '漢', '😀'),
  maxLength: 300,
});
const text = fc.option(line, { nil: undefined });

test('a message of texts is the message that the composer streams', async () => {
  await fc.assert(
    fc.asyncProperty(line, text, text, async (subject, body, html) => {
      const mail = { from: 'ann@example.com', to: 'bob@example.com', subject, ...(html === undefined ? {} : { html }) };
      const node = new MailComposer({ ...mail, ...(body === undefined ? {} : { text: body }) }).compile();
      const streamed = await node.build();
      expect(textMessage(node).toString()).toBe(streamed.toString());
    }),
  );
});

test('a message of a long text is the message that the composer streams', async () => {
  const node = new MailComposer({ text: 'é = a\r\n'.repeat(8_000), html: '漢'.repeat(60_000) }).compile();
  expect(textMessage(node).equals(await node.build())).toBe(true);
});

test('a file is not taken for a text', () => {
  const node = new MailComposer({ text: 'a', attachments: [{ content: Buffer.from('b'), filename: 'b' }] }).compile();
  expect(() => textMessage(node)).toThrow('not a text');
});
