/**
 * The reader of responses beside Node's client, whose parser is llhttp. What the reader accepts, llhttp reads as the same
 * response: what llhttp rejects, the reader rejects. There is no exception.
 */
import { isDeepStrictEqual } from 'node:util';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { mutatedResponse } from '../support/mutated-responses.ts';
import { readByNode, readByUs, type SentResponse } from '../support/read-response.ts';

/** A change tests the same responses each time, and the nightly run others each night. */
const [RESPONSES, FIRST] = NIGHTLY ? [1_000_000, Math.floor(Math.random() * 2 ** 31)] : [10_000, 1];
const OK = 'HTTP/1.1 200 OK\r\n';
const sent = (text: string): SentResponse => ({ bytes: Buffer.from(text, 'latin1'), at: 0, isHead: false });

it(`what llhttp rejects is rejected, in ${RESPONSES} mutated responses from seed ${FIRST}`, async () => {
  let accepted = 0;
  for (let seed = FIRST; seed < FIRST + RESPONSES; seed += 1) {
    const response = mutatedResponse(seed);
    const ours = readByUs(response);
    if (ours === undefined) continue;
    accepted += 1;
    const { bytes, at, isHead } = response;
    const first = await readByNode({ bytes: bytes.subarray(0, ours.end), at: Math.min(at, ours.end), isHead });
    const told = () => `seed ${seed}: ${JSON.stringify(bytes.toString('latin1'))}, cut at ${at}, HEAD: ${isHead}`;
    if (!isDeepStrictEqual(first, ours.seen)) expect(first, told()).toEqual(ours.seen);
    if (ours.end === bytes.length) continue;
    // Bytes follow the response. llhttp may reject them, but it must see no other response.
    const all = await readByNode(response);
    if (all !== undefined && !isDeepStrictEqual(all, ours.seen)) expect(all, told()).toEqual(ours.seen);
  }
  // The mutations leave enough that is valid.
  expect(accepted).toBeGreaterThan(RESPONSES / 10);
}, 600_000);

it('both read an ordinary response', async () => {
  const response = { bytes: Buffer.from(`${OK}Content-Length: 3\r\nx-a: 1\r\n\r\nabc`), at: 5, isHead: false };
  const seen = { status: 200, fields: ['Content-Length', '3', 'x-a', '1'], body: 'abc' };
  expect(readByUs(response)).toEqual({ seen, end: response.bytes.length });
  expect(await readByNode(response)).toEqual(seen);
});

describe('llhttp accepts more', () => {
  // The table of docs/upstream-responses.md gives the reason of each.
  it.each([
    ['a transfer coding besides chunked', `${OK}Transfer-Encoding: gzip\r\n\r\nabc`],
    ['chunked behind another coding', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`],
    ['a status below 100', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['a length of more than 15 digits', `${OK}Content-Length: 0000000000000000003\r\n\r\nabc`],
    [
      'a chunk size of more than 13 digits',
      `${OK}Transfer-Encoding: chunked\r\n\r\n00000000000003\r\nabc\r\n0\r\n\r\n`,
    ],
    ['a line feed in front of the head', `\r\n${OK}Content-Length: 0\r\n\r\n`],
  ])('%s', async (_title, text) => {
    expect(readByUs(sent(text))).toBeUndefined();
    expect(await readByNode(sent(text))).toBeDefined();
  });
});
