import { buffer, text } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compose } from '../../src/mail/compose.ts';
import { withLineBreaks } from '../../src/mail/line-breaks.ts';

const ann = { address: 'ann@example.com' };
const emailOf = (body: string) =>
  compose({
    ...{ messageId: '<1@example.com>', date: new Date(0), from: ann, to: [ann], cc: [], bcc: [], subject: 'Hi', body },
    ...{ customHeaders: [], attachments: [] },
  });

async function* piecesOf(pieces: readonly string[]) {
  for (const piece of pieces) yield Buffer.from(piece);
}

test('every line feed follows a carriage return, wherever the chunks end', async () => {
  const piece = fc.string({ unit: fc.constantFrom('a', '\r', '\n', 'é') });
  await fc.assert(
    fc.asyncProperty(fc.array(piece), async (pieces) => {
      const whole = await buffer(withLineBreaks(piecesOf(pieces)));
      expect(whole.toString()).toBe(pieces.join('').replaceAll(/(?<!\r)\n/g, '\r\n'));
    }),
  );
});

test('short lines are not sent one by one: a megabyte of them is a few dozen chunks', async () => {
  const chunks = await emailOf('a\n'.repeat(500_000)).open().toArray();
  expect(chunks.length).toBeLessThan(100);
  expect(Buffer.concat(chunks).toString()).toContain('a\r\n'.repeat(500_000));
});

test.each([
  ['ASCII', 'a'.repeat(70_000)],
  ['accents', 'aé'.repeat(70_000)],
  ['Chinese', '漢'.repeat(70_000)],
  ['halves of surrogate pairs at the ends of slices', `a${'😀'.repeat(70_000)}`],
])('a long body arrives as it is: %s', async (_, body) => {
  const message = await text(emailOf(body).open());
  const [, encoding, content = ''] = /Content-Transfer-Encoding: (\S+)[\s\S]*?\r\n\r\n([\s\S]*)/.exec(message) ?? [];
  const bytes =
    encoding === 'base64'
      ? Buffer.from(content, 'base64')
      : Buffer.from(
          content
            .replaceAll('=\r\n', '')
            .replaceAll(/=([\dA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
          'latin1',
        );
  expect(bytes.toString().trimEnd()).toBe(body);
});
