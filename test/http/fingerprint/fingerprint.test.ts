import { bytesOf, field, file, inChunks, multipart, multipartType, type WrittenPart } from 'headgate-testbed/bodies';
import { describe, expect, it } from 'vitest';
import { isBodyError } from '../../../src/http/body-error.ts';
import { createFingerprinter, fingerprint, type RequestHead } from '../../../src/http/fingerprint/fingerprint.ts';
import { makeFingerprint } from '../../support/fingerprint-of.ts';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

const json = (text: string | Uint8Array, type = JSON_TYPE): string => makeFingerprint(text, type).value;
const form = (text: string, type = FORM_TYPE): string => makeFingerprint(text, type).value;
const ofParts = (
  parts: readonly WrittenPart[],
  boundary = 'b',
  rest: { preamble?: string; epilogue?: string } = {},
): string => makeFingerprint(multipart({ boundary, parts, ...rest }), multipartType(boundary)).value;

function reasonOf(body: string, type: string): string | undefined {
  try {
    makeFingerprint(body, type);
    return undefined;
  } catch (error) {
    return isBodyError(error) ? `${error.status} ${error.reason}` : String(error);
  }
}

describe('I3: the head of a request', () => {
  const base = { method: 'POST', path: '/a', query: 'x=1', contentType: 'text/plain' };
  const of = (change: object, account?: string): string =>
    makeFingerprint('body', 'text/plain', {
      head: { ...base, ...change },
      ...(account === undefined ? {} : { account }),
    }).value;

  it('is compared by method, path, query, content type, encoding and account', () => {
    const fingerprints = [
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
    expect(new Set(fingerprints).size).toBe(fingerprints.length);
  });

  it('is compared by its media type and its parameters, without their case and spaces', () => {
    const plain = of({ contentType: 'text/plain; charset=utf-8' });
    expect(of({ contentType: 'Text/PLAIN;CHARSET=utf-8' })).toBe(plain);
    expect(of({ contentType: 'text/plain' })).not.toBe(plain);
    expect(of({ contentType: 'text/plain; charset=latin1' })).not.toBe(plain);
    expect(of({ contentType: 'nonsense' })).not.toBe(of({ contentType: 'nonsense ' }));
  });

  it('an empty body is accepted, whatever its type', () => {
    const types = [JSON_TYPE, FORM_TYPE, 'multipart/form-data', multipartType('b')];
    for (const type of types) expect(reasonOf('', type)).toBeUndefined();
  });
});

describe('I3: JSON', () => {
  const base = json('{"to":["a@x","b@x"],"n":1.0,"o":{"a":null,"b":{}}}');

  it('white space and the order of properties are ignored', () => {
    expect(json('\n{ "o" : {"b":{ } , "a":null},\t"n":1.0, "to":[ "a@x" ,"b@x"] } ')).toBe(base);
    expect(json('{"n":1.0,"to":["a@x","b@x"],"o":{"a":null,"b":{}}}', 'application/json')).toBe(base);
  });

  it.each([
    ['the order of items', '{"to":["b@x","a@x"],"n":1.0,"o":{"a":null,"b":{}}}'],
    ['how a number is written', '{"to":["a@x","b@x"],"n":1,"o":{"a":null,"b":{}}}'],
    ['how a string is written', '{"to":["\\u0061@x","b@x"],"n":1.0,"o":{"a":null,"b":{}}}'],
    ['how a name is written', '{"t\\u006f":["a@x","b@x"],"n":1.0,"o":{"a":null,"b":{}}}'],
    ['null and a missing property', '{"to":["a@x","b@x"],"n":1.0,"o":{"b":{}}}'],
    ['the object that has a property', '{"to":["a@x","b@x"],"n":1.0,"o":{"b":{}},"a":null}'],
    ['an array and an object', '{"to":["a@x","b@x"],"n":1.0,"o":{"a":null,"b":[]}}'],
    ['nesting', '{"to":[["a@x","b@x"]],"n":1.0,"o":{"a":null,"b":{}}}'],
    ['a byte order mark', '\uFEFF{"to":["a@x","b@x"],"n":1.0,"o":{"a":null,"b":{}}}'],
  ])('a difference is noticed: %s', (_, text) => {
    expect(json(text)).not.toBe(base);
  });

  it('integers that JSON.parse merges are different', () => {
    expect(json('{"id":9007199254740993}')).not.toBe(json('{"id":9007199254740992}'));
  });

  it('is compared by its bytes if a name is given twice, also if one of them has escapes', () => {
    expect(json('{"a":1,"a":2}')).not.toBe(json('{"a":2,"a":1}'));
    expect(json('{"a":1,"a":2}')).not.toBe(json('{ "a":1,"a":2}'));
    expect(json('[{"a":1,"\\u0061":2}]')).not.toBe(json('[{"\\u0061":2,"a":1}]'));
    expect(json('{"a":{"x":1},"b":{"x":1}}')).toBe(json('{"b":{"x":1},"a":{"x":1}}'));
  });

  it('is compared by its bytes if it is not JSON, or not UTF-8', () => {
    for (const text of ['{"a":1', '{"a":1,}', "{'a':1}", '01', '[1 2]', 'nul', '"\t"', '{"a":1}x']) {
      expect(json(text)).not.toBe(json(`${text} `));
      expect(json(text)).toBe(json(text));
    }
    const invalid = (byte: number) => Buffer.from([0x22, byte, 0x22]);
    expect(json(invalid(0xff))).not.toBe(json(invalid(0xfe)));
    expect(json(Buffer.concat([invalid(0xff), bytesOf(' ')]))).not.toBe(json(invalid(0xff)));
  });

  it('is compared by its bytes if its charset is not UTF-8, or if it is encoded', () => {
    expect(json('{"a":1}', 'application/json;charset=utf-16')).not.toBe(
      json('{ "a":1}', 'application/json;charset=utf-16'),
    );
    const gzip = (text: string): string =>
      makeFingerprint(text, JSON_TYPE, { head: { contentEncoding: 'gzip' } }).value;
    expect(gzip('{"a":1}')).not.toBe(gzip('{ "a":1}'));
    expect(json('{"a":1}', 'application/vnd.x+json')).toBe(json('{ "a":1}', 'application/vnd.x+json'));
  });

  it('every byte of a large string is compared, in constant memory', () => {
    const text = (byte: string): string => `{"file":"${'A'.repeat(3_000_000)}${byte}","n":1}`;
    expect(json(text('B'))).not.toBe(json(text('C')));
    expect(json(text('B'))).toBe(json(`{ "n" : 1, ${text('B').slice(1, -7)}}`));
  });

  it('is refused if it is nested more than 64 levels deep', () => {
    expect(reasonOf(`${'['.repeat(64)}${']'.repeat(64)}`, JSON_TYPE)).toBeUndefined();
    expect(reasonOf(`${'['.repeat(65)}${']'.repeat(65)}`, JSON_TYPE)).toBe('422 too_deep');
    expect(reasonOf(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`, JSON_TYPE)).toBe('422 too_deep');
    expect(reasonOf('['.repeat(1_000_000), JSON_TYPE)).toBe('422 too_deep');
  });

  it('is compared by its bytes if it has very many properties, or very long names', () => {
    const many = (gap: string): string =>
      `{${Array.from({ length: 60_000 }, (_, i) => `"k${i}":${gap}"0123456789"`).join()}}`;
    expect(json(many(''))).not.toBe(json(many(' ')));
    const long = `{"${'k'.repeat(70_000)}":1}`;
    expect(json(long)).not.toBe(json(`${long} `));
  });
});

describe('I3: the memory for a body of very many pieces', () => {
  it.each([
    ['a form', FORM_TYPE, '&a=', 1_000],
    ['a JSON array', JSON_TYPE, ',{"b":1,"a":1}', 300],
  ])('is constant: %s', (_, contentType, piece, thousands) => {
    const fingerprinter = createFingerprinter({ method: 'POST', path: '/', query: '', contentType });
    fingerprinter.write(bytesOf(contentType === JSON_TYPE ? '[0' : 'a'));
    const chunk = bytesOf(piece.repeat(1_000));
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < thousands; i++) fingerprinter.write(chunk);
    // All pieces together are 3 MB or more, and their digests 10 MB.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2_000_000);
  });
});

describe('I3: a form', () => {
  it('is compared by its percent-decoded pairs', () => {
    const base = form('a=1+2&b=%2F%c3%a9&c');
    expect(form('%61=1%202&b=/%C3%A9&c')).toBe(base);
    for (const other of ['a=1+2&b=%2F%c3%a9&c=', 'b=%2F%c3%a9&a=1+2&c', 'a=1+2&b=%2F%c3%a9', 'a=1%2B2&b=%2F%c3%a9&c']) {
      expect(form(other)).not.toBe(base);
    }
  });

  it('is compared as bytes: %ff and %fe differ, and an escaped separator is not a separator', () => {
    expect(form('a=%ff')).not.toBe(form('a=%fe'));
    expect(form('a=%26b=1')).not.toBe(form('a=&b=1'));
    expect(form('a%3D=1')).not.toBe(form('a==1'));
    expect(form('a=1&&b=2')).not.toBe(form('a=1&b=2'));
  });

  it('is compared by its bytes if an escape is malformed', () => {
    expect(form('a=%zz')).not.toBe(form('a=%25zz'));
    expect(form('a=%4&b=%41')).not.toBe(form('a=%4&b=A'));
    expect(form('b=%41&a=%')).not.toBe(form('b=A&a=%'));
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

  it('boundary, preamble and epilogue are ignored', () => {
    expect(ofParts(parts, '"another:one"'.replaceAll('"', 'x').replace(':', 'y'))).toBe(base);
    expect(ofParts(parts, 'b', { preamble: 'This is a message.\r\n', epilogue: '\r\nthe end' })).toBe(base);
    expect(ofParts(parts, 'b', { epilogue: '' })).toBe(base);
    const body = multipart({ boundary: 'b', parts });
    expect(makeFingerprint(body, 'Multipart/Form-Data;BOUNDARY="b"').value).toBe(base);
    expect(makeFingerprint(body, 'multipart/form-data; boundary=b; charset=utf-8').value).not.toBe(base);
  });

  it('the order of the headers of a part, and the case of their names, are ignored', () => {
    const turned = { ...first, headers: first.headers.toReversed() };
    const upper = {
      ...second,
      headers: second.headers.map((header) => header.toString().replace(/^[^:]+/, (name) => name.toUpperCase())),
    };
    expect(ofParts([account, turned, upper, subject])).toBe(base);
  });

  it('the order of parts is compared only within a name', () => {
    expect(ofParts([subject, first, account, second])).toBe(base);
    expect(ofParts([account, second, first, subject])).not.toBe(base);
  });

  it.each([
    ['a content', [account, first, file('attachments', 'b.txt', 'twO'), subject]],
    ['a file name', [account, first, file('attachments', 'B.txt', 'two'), subject]],
    ['a content type', [account, first, file('attachments', 'b.txt', 'two', 'text/html'), subject]],
    ['a field name', [account, first, file('attachment', 'b.txt', 'two'), subject]],
    ['a missing part', [account, first, subject]],
    ['a repeated part', [...parts, subject]],
    ['a line break at the end', [account, first, second, field('subject', 'Grüße\r\n')]],
    [
      'an added header',
      [account, first, second, { headers: [...subject.headers, 'X-A: 1'], content: subject.content }],
    ],
    [
      'the order of two headers of one name',
      [account, first, second, { headers: [...subject.headers, 'X: 2', 'X: 1'], content: 'Grüße' }],
    ],
  ])('a difference is noticed: %s', (_, changed) => {
    expect(ofParts(changed)).not.toBe(base);
  });

  it('headers are compared as bytes, without decoding', () => {
    const named = (byte: number): WrittenPart => ({
      headers: [Buffer.concat([bytesOf('Content-Disposition: form-data; name="a'), Buffer.from([byte]), bytesOf('"')])],
      content: 'x',
    });
    expect(ofParts([named(0xff)])).not.toBe(ofParts([named(0xfe)]));
  });

  it('the order is compared if a name can be read in two ways, or if parts have no names', () => {
    const odd = { headers: ['Content-Disposition: form-data; name="a"; name="c"'], content: '1' };
    expect(ofParts([odd, subject])).not.toBe(ofParts([subject, odd]));
    const mixed = (order: readonly WrittenPart[]): string =>
      makeFingerprint(multipart({ boundary: 'b', parts: order }), 'multipart/mixed; boundary=b').value;
    expect(mixed([account, subject])).not.toBe(mixed([subject, account]));
  });

  it('everything is compared if a server may see different parts', () => {
    const ambiguous = (boundary: string): string => ofParts([field('a', `x\n--${boundary}\r\n\r\ny`)], boundary);
    expect(ambiguous('b')).toBe(ambiguous('b'));
    expect(ofParts([field('a', 'x\n--c\r\n\r\ny')], 'b')).not.toBe(ofParts([field('a', 'x\n--c\r\n\r\ny')], 'c'));
  });

  it.each([
    ['no boundary', 'multipart/form-data'],
    ['an empty boundary', 'multipart/form-data; boundary=""'],
    ['two boundaries', 'multipart/form-data; boundary=b; boundary=c'],
    ['an extended boundary parameter', "multipart/form-data; boundary*=utf-8''b"],
    ['a boundary that is too long', `multipart/form-data; boundary=${'b'.repeat(71)}`],
    ['a boundary that ends with a space', 'multipart/form-data; boundary="b "'],
  ])('is refused with %s in its type', (_, type) => {
    expect(reasonOf('--b--', type)).toBe('422 malformed_multipart');
  });

  it('is refused if it is incomplete', () => {
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
    const keyed = makeFingerprint('x', 'text/plain', { secret: 'k' }).value;
    expect(keyed).toBe(makeFingerprint('x', 'text/plain', { secret: 'k' }).value);
    const plain = makeFingerprint('x', 'text/plain').value;
    for (const i of [1, 2]) expect(keyed.split('.')[i]).not.toBe(plain.split('.')[i]);
    for (const secret of ['', null, 5, new Uint8Array()])
      expect(() => makeFingerprint('x', 'text/plain', { secret: secret as never })).toThrow(
        'secret: must be text or bytes, not empty',
      );
    // Otherwise a fingerprint without a secret would be stored.
    expect(() => createFingerprinter({ method: 'POST', path: '/' }, { secert: 'k' } as never)).toThrow(
      'options.secert: unknown option (expected secret), got a string',
    );
  });

  it('is the same for a stream and for its chunks, and for every version of headgate', async () => {
    const body = '{"to":"a@x"}';
    const request = { method: 'POST', path: '/x', query: 'a=1', account: 'acc_1', contentType: JSON_TYPE };
    async function* stream(): AsyncGenerator<Uint8Array> {
      yield* inChunks(bytesOf(body), [3]);
    }
    const { value } = await fingerprint({ ...request, body: stream() });
    expect(value).toBe(makeFingerprint(body, JSON_TYPE, { head: request, account: 'acc_1' }).value);
    // Stored fingerprints must not change under their keys. If this one changes, its first field, the version, must
    // change too.
    expect(value).toMatchInlineSnapshot(
      `"1.GGm-WhMqFnxDa-XYUaZLh1V7tkRCzlOLt0awFeJ0jPA.JvEjACQezUPWIQgKl8CIOQ0nj.85EdvX2Y"`,
    );
    expect((await fingerprint(request)).value).toBe(
      makeFingerprint('', JSON_TYPE, { head: request, account: 'acc_1' }).value,
    );
  });

  it('compares the fields that it is given, only with a secret, and stores no value', () => {
    const of = (compares: RequestHead['compares'], secret: string | undefined = 'k', account?: string) =>
      makeFingerprint('x', 'text/plain', { head: { compares }, secret, ...(account === undefined ? {} : { account }) });
    const ann = of([['authorization', 'Basic YW5uOjEyMzQ=']]);
    expect(ann.compares).toEqual(['authorization']);
    expect(ann.value).not.toMatch(/YW5u|MTIzN|1234/);
    const others = [
      of([['authorization', 'Basic YW5uOjEyMzU=']]),
      of([['authorization', undefined]]),
      of([['authorization', '']]),
      of([['cookie', 'Basic YW5uOjEyMzQ=']]),
      of([['authorization', 'Basic YW5uOjEyMzQ=']], 'another secret'),
      of([['authorization', 'Basic YW5uOjEyMzQ=']], 'k', 'acc_1'),
      of([]),
      of(undefined),
    ];
    expect(new Set([ann, ...others].map(({ value }) => value)).size).toBe(8);
    expect(of([]).value).toBe(of(undefined).value);
    expect(() => createFingerprinter({ method: 'POST', path: '/', compares: [['cookie', 'a']] })).toThrow(
      /^secret: must be given if fields are compared/,
    );
  });

  it('cannot be had before the end of the body', () => {
    expect(() => createFingerprinter({ method: 'GET', path: '/' }).fingerprint()).toThrow('end()');
  });
});
