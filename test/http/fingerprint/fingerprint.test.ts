import { describe, expect, it } from 'vitest';
import { isBodyError } from '../../../src/http/body-error.ts';
import { createFingerprinter, fingerprint } from '../../../src/http/fingerprint/fingerprint.ts';
import {
  bytesOf,
  field,
  file,
  inChunks,
  multipart,
  multipartType,
  printOf,
  type WrittenPart,
} from '../../support/bodies.ts';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

const ofJson = (text: string | Uint8Array, type = JSON_TYPE): string => printOf(text, type).value;
const ofForm = (text: string, type = FORM_TYPE): string => printOf(text, type).value;
const ofParts = (
  parts: readonly WrittenPart[],
  boundary = 'b',
  rest: { preamble?: string; epilogue?: string } = {},
): string => printOf(multipart({ boundary, parts, ...rest }), multipartType(boundary)).value;

function reasonOf(body: string, type: string): string | undefined {
  try {
    printOf(body, type);
    return undefined;
  } catch (error) {
    return isBodyError(error) ? `${error.status} ${error.reason}` : String(error);
  }
}

describe('I3: the head of a request', () => {
  const base = { method: 'POST', path: '/a', query: 'x=1', contentType: 'text/plain' };
  const of = (change: object, account?: string): string =>
    printOf('body', 'text/plain', { head: { ...base, ...change }, ...(account === undefined ? {} : { account }) })
      .value;

  it('counts: method, path, query, content type, encoding, account', () => {
    const prints = [
      of({}),
      of({ method: 'post' }),
      of({ path: '/A' }),
      of({ path: '/%61' }),
      of({ query: undefined }),
      of({ query: '' }),
      of({ query: 'x=2' }),
      of({ path: '/a?x=1', query: undefined }),
      of({ contentType: undefined }),
      of({ contentType: 'text/html' }),
      of({ contentEncoding: 'gzip' }),
      of({}, ''),
      of({}, 'acc_1'),
      of({}, 'acc_1\uD800'),
      of({}, 'acc_1\uFFFD'),
    ];
    expect(new Set(prints).size).toBe(prints.length);
  });

  it('has a media type in which case and blanks do not count, and parameters do', () => {
    const plain = of({ contentType: 'text/plain; charset=utf-8' });
    expect(of({ contentType: 'Text/PLAIN;CHARSET=utf-8' })).toBe(plain);
    expect(of({ contentType: 'text/plain' })).not.toBe(plain);
    expect(of({ contentType: 'text/plain; charset=latin1' })).not.toBe(plain);
    expect(of({ contentType: 'nonsense' })).not.toBe(of({ contentType: 'nonsense ' }));
  });

  it('a body of no bytes is no body, whatever its type', () => {
    const types = [JSON_TYPE, FORM_TYPE, 'multipart/form-data', multipartType('b')];
    for (const type of types) expect(reasonOf('', type)).toBeUndefined();
  });
});

describe('I3: JSON', () => {
  const base = ofJson('{"to":["a@x","b@x"],"n":1.0,"o":{"a":null,"b":{}}}');

  it('white space and the order of properties do not count', () => {
    expect(ofJson('\n{ "o" : {"b":{ } , "a":null},\t"n":1.0, "to":[ "a@x" ,"b@x"] } ')).toBe(base);
    expect(ofJson('{"n":1.0,"to":["a@x","b@x"],"o":{"a":null,"b":{}}}', 'application/json')).toBe(base);
  });

  it.each([
    ['the order of items', '{"to":["b@x","a@x"],"n":1.0,"o":{"a":null,"b":{}}}'],
    ['how a number is written', '{"to":["a@x","b@x"],"n":1,"o":{"a":null,"b":{}}}'],
    ['how a string is written', '{"to":["\\u0061@x","b@x"],"n":1.0,"o":{"a":null,"b":{}}}'],
    ['how a name is written', '{"t\\u006f":["a@x","b@x"],"n":1.0,"o":{"a":null,"b":{}}}'],
    ['null beside nothing', '{"to":["a@x","b@x"],"n":1.0,"o":{"b":{}}}'],
    ['where a property stands', '{"to":["a@x","b@x"],"n":1.0,"o":{"b":{}},"a":null}'],
    ['an array beside an object', '{"to":["a@x","b@x"],"n":1.0,"o":{"a":null,"b":[]}}'],
    ['nesting', '{"to":[["a@x","b@x"]],"n":1.0,"o":{"a":null,"b":{}}}'],
    ['a byte order mark', '\uFEFF{"to":["a@x","b@x"],"n":1.0,"o":{"a":null,"b":{}}}'],
  ])('counts: %s', (_, text) => {
    expect(ofJson(text)).not.toBe(base);
  });

  it('integers that JSON.parse merges are told apart', () => {
    expect(ofJson('{"id":9007199254740993}')).not.toBe(ofJson('{"id":9007199254740992}'));
  });

  it('is compared by its bytes where a name comes twice, also where that takes decoding', () => {
    expect(ofJson('{"a":1,"a":2}')).not.toBe(ofJson('{"a":2,"a":1}'));
    expect(ofJson('{"a":1,"a":2}')).not.toBe(ofJson('{ "a":1,"a":2}'));
    expect(ofJson('[{"a":1,"\\u0061":2}]')).not.toBe(ofJson('[{"\\u0061":2,"a":1}]'));
    expect(ofJson('{"a":{"x":1},"b":{"x":1}}')).toBe(ofJson('{"b":{"x":1},"a":{"x":1}}'));
  });

  it('is compared by its bytes where it is none, or no UTF-8', () => {
    for (const text of ['{"a":1', '{"a":1,}', "{'a':1}", '01', '[1 2]', 'nul', '"\t"', '{"a":1}x']) {
      expect(ofJson(text)).not.toBe(ofJson(`${text} `));
      expect(ofJson(text)).toBe(ofJson(text));
    }
    const invalid = (byte: number) => Buffer.from([0x22, byte, 0x22]);
    expect(ofJson(invalid(0xff))).not.toBe(ofJson(invalid(0xfe)));
    expect(ofJson(Buffer.concat([invalid(0xff), bytesOf(' ')]))).not.toBe(ofJson(invalid(0xff)));
  });

  it('is compared by its bytes where its charset is another, or it is encoded', () => {
    expect(ofJson('{"a":1}', 'application/json;charset=utf-16')).not.toBe(
      ofJson('{ "a":1}', 'application/json;charset=utf-16'),
    );
    const gzip = (text: string): string => printOf(text, JSON_TYPE, { head: { contentEncoding: 'gzip' } }).value;
    expect(gzip('{"a":1}')).not.toBe(gzip('{ "a":1}'));
    expect(ofJson('{"a":1}', 'application/vnd.x+json')).toBe(ofJson('{ "a":1}', 'application/vnd.x+json'));
  });

  it('a large string counts in every byte, in constant memory', () => {
    const text = (byte: string): string => `{"file":"${'A'.repeat(3_000_000)}${byte}","n":1}`;
    expect(ofJson(text('B'))).not.toBe(ofJson(text('C')));
    expect(ofJson(text('B'))).toBe(ofJson(`{ "n" : 1, ${text('B').slice(1, -7)}}`));
  });

  it('is refused past a depth of 64', () => {
    expect(reasonOf(`${'['.repeat(64)}${']'.repeat(64)}`, JSON_TYPE)).toBeUndefined();
    expect(reasonOf(`${'['.repeat(65)}${']'.repeat(65)}`, JSON_TYPE)).toBe('422 too_deep');
    expect(reasonOf(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`, JSON_TYPE)).toBe('422 too_deep');
    expect(reasonOf('['.repeat(1_000_000), JSON_TYPE)).toBe('422 too_deep');
  });

  it('many properties, or endless names, are compared by their bytes at the latest', () => {
    const many = (gap: string): string =>
      `{${Array.from({ length: 60_000 }, (_, i) => `"k${i}":${gap}"0123456789"`).join()}}`;
    expect(ofJson(many(''))).not.toBe(ofJson(many(' ')));
    const long = `{"${'k'.repeat(70_000)}":1}`;
    expect(ofJson(long)).not.toBe(ofJson(`${long} `));
  });
});

describe('I3: a form', () => {
  it('is its percent-decoded pairs', () => {
    const base = ofForm('a=1+2&b=%2F%c3%a9&c');
    expect(ofForm('%61=1%202&b=/%C3%A9&c')).toBe(base);
    for (const other of ['a=1+2&b=%2F%c3%a9&c=', 'b=%2F%c3%a9&a=1+2&c', 'a=1+2&b=%2F%c3%a9', 'a=1%2B2&b=%2F%c3%a9&c']) {
      expect(ofForm(other)).not.toBe(base);
    }
  });

  it('is bytes: %ff and %fe differ, and no separator can be smuggled in', () => {
    expect(ofForm('a=%ff')).not.toBe(ofForm('a=%fe'));
    expect(ofForm('a=%26b=1')).not.toBe(ofForm('a=&b=1'));
    expect(ofForm('a%3D=1')).not.toBe(ofForm('a==1'));
    expect(ofForm('a=1&&b=2')).not.toBe(ofForm('a=1&b=2'));
  });

  it('is compared by its bytes where an escape is broken', () => {
    expect(ofForm('a=%zz')).not.toBe(ofForm('a=%25zz'));
    expect(ofForm('a=%4&b=%41')).not.toBe(ofForm('a=%4&b=A'));
    expect(ofForm('b=%41&a=%')).not.toBe(ofForm('b=A&a=%'));
  });
});

describe('I3: multipart', () => {
  const parts = [
    field('account_id', 'acc_1'),
    file('attachments', 'föto.jpg', 'one'),
    file('attachments', 'b.txt', 'two'),
    field('subject', 'Grüße'),
  ] as const;
  const [account, first, second, subject] = parts;
  const base = ofParts(parts);

  it('boundary, preamble and epilogue do not count', () => {
    expect(ofParts(parts, '"another:one"'.replaceAll('"', 'x').replace(':', 'y'))).toBe(base);
    expect(ofParts(parts, 'b', { preamble: 'This is a message.\r\n', epilogue: '\r\nthe end' })).toBe(base);
    expect(ofParts(parts, 'b', { epilogue: '' })).toBe(base);
    const body = multipart({ boundary: 'b', parts });
    expect(printOf(body, 'Multipart/Form-Data;BOUNDARY="b"').value).toBe(base);
    expect(printOf(body, 'multipart/form-data; boundary=b; charset=utf-8').value).not.toBe(base);
  });

  it('the order of a part’s headers and the case of their names do not count', () => {
    const turned = { ...first, headers: first.headers.toReversed() };
    const upper = {
      ...second,
      headers: second.headers.map((header) => header.toString().replace(/^[^:]+/, (name) => name.toUpperCase())),
    };
    expect(ofParts([account, turned, upper, subject])).toBe(base);
  });

  it('the order of parts counts within a name only', () => {
    expect(ofParts([subject, first, account, second])).toBe(base);
    expect(ofParts([account, second, first, subject])).not.toBe(base);
  });

  it.each([
    ['content', [account, first, file('attachments', 'b.txt', 'twO'), subject]],
    ['a file name', [account, first, file('attachments', 'B.txt', 'two'), subject]],
    ['a type', [account, first, file('attachments', 'b.txt', 'two', 'text/html'), subject]],
    ['a name', [account, first, file('attachment', 'b.txt', 'two'), subject]],
    ['one part less', [account, first, subject]],
    ['one part twice', [...parts, subject]],
    ['a line break at the end', [account, first, second, field('subject', 'Grüße\r\n')]],
    ['a header more', [account, first, second, { headers: [...subject.headers, 'X-A: 1'], content: subject.content }]],
    [
      'a header’s order within its name',
      [account, first, second, { headers: [...subject.headers, 'X: 2', 'X: 1'], content: 'Grüße' }],
    ],
  ])('counts: %s', (_, changed) => {
    expect(ofParts(changed)).not.toBe(base);
  });

  it('no header is decoded: bytes that read alike differ', () => {
    const named = (byte: number): WrittenPart => ({
      headers: [Buffer.concat([bytesOf('Content-Disposition: form-data; name="a'), Buffer.from([byte]), bytesOf('"')])],
      content: 'x',
    });
    expect(ofParts([named(0xff)])).not.toBe(ofParts([named(0xfe)]));
  });

  it('the order counts where a name can be read in two ways, and where parts have no names', () => {
    const odd = { headers: ['Content-Disposition: form-data; name="a"; name="c"'], content: '1' };
    expect(ofParts([odd, subject])).not.toBe(ofParts([subject, odd]));
    const mixed = (order: readonly WrittenPart[]): string =>
      printOf(multipart({ boundary: 'b', parts: order }), 'multipart/mixed; boundary=b').value;
    expect(mixed([account, subject])).not.toBe(mixed([subject, account]));
  });

  it('everything counts where a server may see other parts than we do', () => {
    const smuggled = (boundary: string): string => ofParts([field('a', `x\n--${boundary}\r\n\r\ny`)], boundary);
    expect(smuggled('b')).toBe(smuggled('b'));
    expect(ofParts([field('a', 'x\n--c\r\n\r\ny')], 'b')).not.toBe(ofParts([field('a', 'x\n--c\r\n\r\ny')], 'c'));
  });

  it.each([
    ['no boundary', 'multipart/form-data'],
    ['an empty one', 'multipart/form-data; boundary=""'],
    ['two', 'multipart/form-data; boundary=b; boundary=c'],
    ['another spelling of it', "multipart/form-data; boundary*=utf-8''b"],
    ['a long one', `multipart/form-data; boundary=${'b'.repeat(71)}`],
    ['one that ends with a blank', 'multipart/form-data; boundary="b "'],
  ])('is refused with %s in its type', (_, type) => {
    expect(reasonOf('--b--', type)).toBe('422 malformed_multipart');
  });

  it('is refused where it breaks off', () => {
    expect(reasonOf('--b\r\n\r\nx', multipartType('b'))).toBe('422 malformed_multipart');
  });
});

describe('a fingerprint', () => {
  it('is short visible ASCII, and keyed by the secret', () => {
    const many = Array.from({ length: 200 }, (_, i) => field(`f${i}`, 'x'));
    const longest = ofParts(many);
    expect(longest).toMatch(/^1\.[\x21-\x7e]+$/);
    expect(longest.length).toBeLessThanOrEqual(2_048);
    expect(ofParts([...many, field('one', 'more')]).length).toBeLessThan(100);
    const keyed = printOf('x', 'text/plain', { secret: 'k' }).value;
    expect(keyed).toBe(printOf('x', 'text/plain', { secret: 'k' }).value);
    const plain = printOf('x', 'text/plain').value;
    for (const i of [1, 2]) expect(keyed.split('.')[i]).not.toBe(plain.split('.')[i]);
    expect(() => printOf('x', 'text/plain', { secret: '' })).toThrow('secret');
  });

  it('comes of a stream as of its pieces, and stays the same across versions of headgate', async () => {
    const body = '{"to":"a@x"}';
    const request = { method: 'POST', path: '/x', query: 'a=1', account: 'acc_1', contentType: JSON_TYPE };
    async function* stream(): AsyncGenerator<Uint8Array> {
      yield* inChunks(bytesOf(body), [3]);
    }
    const { value } = await fingerprint({ ...request, body: stream() });
    expect(value).toBe(printOf(body, JSON_TYPE, { head: request, account: 'acc_1' }).value);
    // Stored prints must not change under their keys: a change of this one needs another version in front.
    expect(value).toMatchInlineSnapshot(
      `"1.GGm-WhMqFnxDa-XYUaZLh1V7tkRCzlOLt0awFeJ0jPA.JvEjACQezUPWIQgKl8CIOQ0nj.85EdvX2Y"`,
    );
    expect((await fingerprint(request)).value).toBe(printOf('', JSON_TYPE, { head: request, account: 'acc_1' }).value);
  });

  it('is not there before the body’s end', () => {
    expect(() => createFingerprinter({ method: 'GET', path: '/' }).fingerprint()).toThrow('end()');
  });
});
