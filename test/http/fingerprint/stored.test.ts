/** Fingerprints are stored for a day. A later version must make the same ones, or change the version in them. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createFingerprinter } from '../../../src/http/fingerprint/fingerprint.ts';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const MULTIPART_TYPE = 'multipart/form-data; boundary=b';
/** Name, type, body, the total of its fingerprint, and a digest of the whole fingerprint with its labels. */
const STORED: readonly (readonly [string, string, string, string, string])[] = [
  [
    'json object',
    JSON_TYPE,
    '{"b":[1,2.0,{}],"a":{"d":"\\u0061","c":null},"é":""}',
    'y9oB1MMOz7aUvBmL8NGs8Kdi_cgdJL8w7pl6y1kjBKI',
    'S2B17CTXl7g41-mG',
  ],
  [
    'json nested',
    JSON_TYPE,
    `${'{"a":'.repeat(63)}1${'}'.repeat(63)}`,
    'GZDuF98AsVCYn_vgvsUFm7HOPfjkmOj2F5VnLEmDHVU',
    'DWwegPaholdB_170',
  ],
  [
    'json nested with long values',
    JSON_TYPE,
    `${'{"b":"'.concat('x'.repeat(500), '","a":').repeat(30)}[]${'}'.repeat(30)}`,
    'wgLk0PoUiwihDnJEgKmZ766yxMtKdODLLNpAbIVq6Wc',
    'uo1Tk0OlR9rPCE6f',
  ],
  [
    'json values of 1,021 to 1,024 bytes',
    JSON_TYPE,
    JSON.stringify([1021, 1022, 1023, 1024].map((n) => ({ v: 'x'.repeat(n - 3) }))),
    'mylL5X34eFG3ZWcq8C-TpCjI83cAjHyZcKcvZkBjBSY',
    'HZBkjZ31as4a0jnX',
  ],
  [
    'json long',
    JSON_TYPE,
    JSON.stringify(
      Array.from({ length: 3000 }, (_, i) => ({ [`k${(i * 7919) % 3000}`]: i, z: [i], a: 'v'.repeat(i % 40) })),
    ),
    'VyN3M0fia_6391J2EK7YMyGZ2XHKQeLPTTa5X5nLtyo',
    'AZLxffu5mA6LKz30',
  ],
  [
    'json many names',
    JSON_TYPE,
    JSON.stringify(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${(i * 7919) % 500}`, i]))),
    'VCO2TNtyR6E7Aa9BfVcqF8bv9AH-3p7WmP0MhoG9m4Q',
    'usACcr5Mb9UCv8xv',
  ],
  [
    'json names with escapes',
    JSON_TYPE,
    '{"\\n":1,"\\u000b":2,"b":3,"\\"":4}',
    'Qts4jKeCs-UKGc0WS1i-r_W4Sv8V8fd5ajaE3fMNWYM',
    '-2tbeb3d3Q6ui9mo',
  ],
  [
    'json name twice',
    JSON_TYPE,
    '{"a":1,"\\u0061":2}',
    'YZrjKJkMl4whzXrLqw6NLLq5Tgt0SdIAVn6XUL3ytl0',
    'uCcBI3THkcH8CdFY',
  ],
  ['form', FORM_TYPE, 'a=1&b&&c=&=d&%e9=%2B+x;y&', 'q62dAAefeiDWItnJpmHBI9FT9BcdOC6EBDbdtnX-FE4', 'M9ee9QBC8n5Pl_Ki'],
  [
    'form long',
    FORM_TYPE,
    `${'n'.repeat(2000)}=${'v'.repeat(5000)}&${'n'.repeat(1023)}=${'v'.repeat(1024)}&a=${'v'.repeat(1025)}`,
    'f5HZy8u0l3pwrmTSyWH9OKzY9RC9eJ139BCt-bedRU8',
    'iwdTBR84W7T2jsXu',
  ],
  [
    'form many pairs',
    FORM_TYPE,
    Array.from({ length: 300 }, (_, i) => `k${i}=${i}`).join('&'),
    'uH-1xc8n-N6x2DeKM0HF-b0y8ctgg_YsKAFh5K_X0Mc',
    '4RVu5r_XhL1EVFvK',
  ],
  ['form bad escape', FORM_TYPE, 'a=%zz', 'Jwdb3isVo5MWwTLpi3GwSQ_B-0mRlV5IMolT3x_1oxc', 'fsn2Ol3cTfa-Kahn'],
  [
    'multipart',
    MULTIPART_TYPE,
    '--b\r\nX-B: 1\r\ncontent-disposition: form-data; name="é"\r\nA:\r\n\r\n' +
      'x'.repeat(3000) +
      '\r\n--b\r\nContent-Disposition: form-data; name="a"; filename="f"\r\n\r\n\r\n--b--',
    'ihF0Z6RlxKdix8ycLkazXN1PWZ0nTEfnYm9UuhGa-oo',
    'eQEJ-c34_NEf3CWP',
  ],
  [
    'multipart long headers',
    MULTIPART_TYPE,
    `--b\r\nContent-Disposition: form-data; name="a"\r\nx: ${'y'.repeat(3000)}\r\nx: 2\r\n\r\n1\r\n--b--`,
    'dhUrRUuPsjrwynbdGv2AfzMLt3Q9eCQMpykBL2rvdKk',
    'e_NsUAvQcN-pGFTF',
  ],
];

describe('I3: fingerprints of version 1', () => {
  it.each(STORED)('%s', (_, contentType, body, total, whole) => {
    for (const length of [body.length, 7]) {
      const fingerprinter = createFingerprinter({ method: 'POST', path: '/p', contentType });
      const bytes = Buffer.from(body);
      for (let at = 0; at < bytes.length; at += length) fingerprinter.write(bytes.subarray(at, at + length));
      fingerprinter.end();
      const { value, labels } = fingerprinter.fingerprint('acc_1');
      expect(value.split('.')[1]).toBe(total);
      const digest = createHash('sha256').update(`${value}\n${labels.join()}`).digest('base64url');
      expect(digest.slice(0, 16)).toBe(whole);
    }
  });
});
