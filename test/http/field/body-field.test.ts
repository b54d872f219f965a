import { bytesOf, field, file, inChunks, multipart, multipartType, type WrittenPart } from 'headgate-testbed/bodies';
import { describe, expect, it } from 'vitest';
import { isBodyError } from '../../../src/http/body-error.ts';
import { createBodyField } from '../../../src/http/field/body-field.ts';

const NAME = 'account_id';
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** Returns the value, or the reason of the refusal, and checks that both are the same for every chunking. */
function readField(body: string | Uint8Array, contentType: string | undefined, contentEncoding?: string): string {
  const once = (lengths: readonly number[]): string => {
    try {
      const reader = createBodyField({ name: NAME, contentType, contentEncoding, maxValueBytes: 100 });
      for (const chunk of inChunks(bytesOf(body), lengths)) reader.write(chunk);
      return `= ${reader.end()}`;
    } catch (error) {
      if (!isBodyError(error)) throw error;
      expect(error.message).toMatch(/^[\x20-\x7e]+\.$/);
      return `${error.status} ${error.reason}`;
    }
  };
  const whole = once([65_536]);
  for (const lengths of [[1], [2, 3]]) expect(once(lengths)).toBe(whole);
  return whole;
}
/** Adds a shortened body as the title of each test. */
const titled = (cases: readonly (readonly [string, string])[]) =>
  cases.map(([body, expected]) => [body.replace(/^(.{40}).{10,}(.{20})$/s, '$1…$2'), body, expected] as const);
const ofParts = (...parts: WrittenPart[]): string =>
  readField(multipart({ boundary: 'bnd', parts }), multipartType('bnd'));
const withHeaders = (content: string, ...headers: string[]): WrittenPart => ({
  headers: [`Content-Disposition: form-data; name="${NAME}"`, ...headers],
  content,
});
const disposed = (disposition: string): WrittenPart => ({
  headers: [`Content-Disposition: ${disposition}`],
  content: 'other',
});

describe('a field of a JSON body', () => {
  it.each(
    titled([
      ['{"account_id":"acc_1"}', '= acc_1'],
      ['{"x":{"account_id":"y","a":[{"account_id":1}]},"account_id" : "acc_1","z":[]}', '= acc_1'],
      ['{"account_\\u0069d":"\\u0061cc\\n\\ud83d\\ude00é"}', '= acc\n😀é'],
      ['{"x":1}', '422 field_missing'],
      ['{}', '422 field_missing'],
      ['[{"account_id":"x"}]', '422 field_missing'],
      ['"account_id"', '422 field_missing'],
      ['', '422 malformed_json'],
      ['{"account_id":"x"', '422 malformed_json'],
      ['{"account_id":"x",}', '422 malformed_json'],
      ['\uFEFF{"account_id":"x"}', '422 malformed_json'],
      ['{"account_id":"x","y":"\t"}', '422 malformed_json'],
      ['{"account_id":"x"} {"account_id":"y"}', '422 malformed_json'],
      ['{"account_id":"x","account_id":"x"}', '422 field_repeated'],
      ['{"account_id":"x","account\\u005fid":"y"}', '422 field_repeated'],
      ['{"account_id":""}', '422 field_empty'],
      ['{"account_id":1}', '422 field_not_text'],
      ['{"account_id":null}', '422 field_not_text'],
      ['{"account_id":["x"]}', '422 field_not_text'],
      ['{"account_id":{"account_id":"x"}}', '422 field_not_text'],
      ['{"account_id":"\\ud800"}', '422 field_not_text'],
      ['{"account_id":"\uFEFFx"}', '422 field_not_text'],
      [`{"account_id":"${'x'.repeat(100)}"}`, `= ${'x'.repeat(100)}`],
      [`{"account_id":"${'x'.repeat(101)}"}`, '422 field_too_long'],
      [`{"account_id":"${'é'.repeat(51)}"}`, '422 field_too_long'],
      [`{"account_id":"${'x'.repeat(9_000)}"}`, '422 field_too_long'],
      // Go and .NET ignore case and use the last one.
      ['{"account_id":"x","Account_ID":"y"}', '422 field_ambiguous'],
      ['{"account_id":"x","ACCOUNT\\u005fID":"y"}', '422 field_ambiguous'],
      [`{"account_id":"x","${'k'.repeat(5_000)}":1}`, '422 field_ambiguous'],
      [`{"account_id":"x","a":${'['.repeat(64)}`, '422 too_deep'],
    ]),
  )('%s', (_, body, expected) => {
    expect(readField(body, JSON_TYPE)).toBe(expected);
  });

  it('is refused if the bytes are not UTF-8 or the charset is another one', () => {
    expect(readField(Buffer.from('{"account_id":"x","a":"\xff"}', 'latin1'), JSON_TYPE)).toBe('422 malformed_json');
    expect(readField('{"account_id":"x"}', 'application/json; charset="UTF-8"')).toBe('= x');
    expect(readField('{"account_id":"x"}', 'application/ld+json')).toBe('= x');
    expect(readField('{"account_id":"x"}', 'application/json; charset=utf-16le')).toBe('422 unsupported_type');
  });
});

describe('a field of a form', () => {
  it.each(
    titled([
      ['account_id=acc_1', '= acc_1'],
      ['a=1&&account%5Fid=acc+1%2b&b=%zz;x', '= acc 1+'],
      ['a=1', '422 field_missing'],
      ['', '422 field_missing'],
      ['account_id', '422 field_empty'],
      ['account_id=', '422 field_empty'],
      ['account_id=a&account_id=a', '422 field_repeated'],
      ['account_id=%ff', '422 field_not_text'],
      ['account_id=%ef%bb%bfx', '422 field_not_text'],
      ['account_id=%4', '422 malformed_form'],
      ['a%=1&account_id=x', '422 malformed_form'],
      [`account_id=${'x'.repeat(101)}`, '422 field_too_long'],
      [`${'a&'.repeat(999)}account_id=x`, '= x'],
      [`${'a&'.repeat(1_000)}account_id=x`, '422 malformed_form'],
      [`account_id=x&${'k'.repeat(5_000)}=1`, '422 field_ambiguous'],
      ['account_id=x&account_id[]=y', '422 field_ambiguous'],
      ['account_id=x&account_id%5Ba%5D=y', '422 field_ambiguous'],
      ['account_id=x&[account_id]=y', '422 field_ambiguous'],
      ['account_id=x&account.id=y', '422 field_ambiguous'],
      ['account_id=x&+account+id=y', '422 field_ambiguous'],
      ['account_id=x&account_id%00z=y', '422 field_ambiguous'],
      ['account_id=x&%ff=y', '422 field_ambiguous'],
      ['account_id=x;y', '422 field_ambiguous'],
      ['account_id=;y', '422 field_ambiguous'],
      ['account_id=x&a=1;account_id=y', '422 field_ambiguous'],
      ['account_id=x&a;account%5fid=y', '422 field_ambiguous'],
      ['account_id=x&a;b;account_id', '422 field_ambiguous'],
      ['account_id;&account_id=x', '422 field_ambiguous'],
      ['account_id;a=1&account_id=x', '422 field_ambiguous'],
      ['account_id=x&a=1;b=2;c', '= x'],
      ['account_id=x&a=1%3Baccount_id=y', '= x'],
    ]),
  )('%s', (_, body, expected) => {
    expect(readField(body, FORM_TYPE)).toBe(expected);
  });
});

describe('a field of a multipart form', () => {
  const account = field(NAME, 'acc_1');

  it('may be the first, the last or a middle part', () => {
    const attachment = file('attachments', 'a \\"b\\" ü.txt', Buffer.alloc(200_000));
    expect(ofParts(account, attachment)).toBe('= acc_1');
    expect(ofParts(attachment, field('subject', 'x'), account)).toBe('= acc_1');
    expect(
      ofParts(withHeaders('ü', 'Content-Type: text/plain; charset=UTF-8', 'content-transfer-encoding: 8bit')),
    ).toBe('= ü');
    expect(ofParts({ headers: [`content-disposition:form-data;name=${NAME}`], content: 'x' })).toBe('= x');
  });

  it.each([
    ['no field of that name', [field('a', 'b')], '422 field_missing'],
    ['two fields of that name', [account, account], '422 field_repeated'],
    ['an empty value', [field(NAME, '')], '422 field_empty'],
    ['a file', [file(NAME, 'x', 'acc_1')], '422 field_not_text'],
    ['a file with an encoded name', [disposed(`form-data; name="${NAME}"; filename*=utf-8''x`)], '422 field_not_text'],
    ['a field and a file of that name', [account, file(NAME, 'x', 'acc_1')], '422 field_not_text'],
    ['bytes that are not UTF-8', [field(NAME, Buffer.from([0xff]))], '422 field_not_text'],
    ['a byte order mark', [field(NAME, '\uFEFFx')], '422 field_not_text'],
    ['a value that is too long', [field(NAME, 'x'.repeat(101))], '422 field_too_long'],
    ['a binary type', [withHeaders('x', 'Content-Type: application/octet-stream')], '422 field_not_text'],
    ['a JSON type', [withHeaders('"x"', 'Content-Type: application/json')], '422 field_not_text'],
    ['another charset', [withHeaders('x', 'Content-Type: text/plain; charset=utf-16')], '422 field_not_text'],
    ['two types', [withHeaders('x', 'Content-Type: text/plain', 'Content-Type: text/plain')], '422 field_not_text'],
    ['a transfer encoding', [withHeaders('eA==', 'Content-Transfer-Encoding: base64')], '422 field_not_text'],
    [
      'a part with two dispositions',
      [account, withHeaders('x', 'Content-Disposition: form-data; name="a"')],
      '422 field_ambiguous',
    ],
    ['a part without a disposition', [account, { headers: ['A: 1'], content: '' }], '422 field_ambiguous'],
    ['another disposition', [account, disposed('attachment; name="a"')], '422 field_ambiguous'],
    ['a part without a name', [account, disposed('form-data')], '422 field_ambiguous'],
    ['a name given twice', [account, disposed(`form-data; name="a"; name="${NAME}"`)], '422 field_ambiguous'],
    ['name and name*', [account, disposed(`form-data; name="a"; name*=utf-8''${NAME}`)], '422 field_ambiguous'],
    ['a continued name', [account, disposed('form-data; name*0="account"; name*1="_id"')], '422 field_ambiguous'],
    ['an escaped name', [account, disposed('form-data; name="account\\_id"')], '422 field_ambiguous'],
    [
      'a name in a file name',
      [account, disposed(`form-data; filename="; name=${NAME}"; name="a"`)],
      '422 field_ambiguous',
    ],
    ['a name in another parameter', [account, disposed(`form-data; x-name=${NAME}; name="a"`)], '422 field_ambiguous'],
    ['a disposition on two lines', [account, disposed(`form-data;\r\n name="${NAME}"`)], '422 field_ambiguous'],
    ['a malformed disposition', [account, disposed('form-data; name="a" b')], '422 field_ambiguous'],
    ['a name that differs only in case', [account, field('ACCOUNT_ID', 'x')], '422 field_ambiguous'],
    ['a percent-encoded name', [account, field('account%5Fid', 'x')], '422 field_ambiguous'],
    ['the boundary inside a content', [account, field('a', 'x\n--bnd\r\ny')], '422 field_ambiguous'],
  ] as const)('is refused with %s', (_, parts, expected) => {
    expect(ofParts(...parts)).toBe(expected);
  });

  it('is refused if some parsers may see another part after the end', () => {
    const body = multipart({ boundary: 'bnd', parts: [account], epilogue: `\r\n--bnd\r\n\r\n` });
    expect(readField(body, multipartType('bnd'))).toBe('422 field_ambiguous');
  });

  it('is refused with a name that is not UTF-8', () => {
    const odd = {
      headers: [Buffer.from('Content-Disposition: form-data; name="account_id\xff"', 'latin1')],
      content: '',
    };
    expect(ofParts(account, odd)).toBe('422 field_ambiguous');
  });

  it('is refused if the body exceeds the limits of a multipart body, or is malformed', () => {
    const many = (count: number): WrittenPart[] => Array.from({ length: count }, () => field('a', ''));
    expect(ofParts(...many(999), account)).toBe('= acc_1');
    expect(ofParts(...many(1_000), account)).toBe('422 too_many_parts');
    expect(ofParts(account, { headers: [`A: ${'x'.repeat(20_000)}`], content: '' })).toBe('422 part_headers_too_large');
    expect(readField('--bnd\r\n', multipartType('bnd'))).toBe('422 malformed_multipart');
    expect(readField('--bnd--', 'multipart/form-data')).toBe('422 malformed_multipart');
  });
});

describe('a field of any body', () => {
  it('is refused if the body has another type, or a content encoding', () => {
    for (const type of [undefined, 'nonsense', 'text/plain', 'application/xml', 'multipart/mixed; boundary=b']) {
      expect(readField('x', type)).toBe('422 unsupported_type');
    }
    expect(readField('{"account_id":"x"}', JSON_TYPE, 'gzip')).toBe('422 content_encoded');
    expect(readField('{"account_id":"x"}', JSON_TYPE, 'identity')).toBe('= x');
  });
});
