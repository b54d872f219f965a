import { describe, expect, it } from 'vitest';
import { storedResponse } from '../../src/http/index.ts';
import { decodeResponse } from '../../src/http/stored-response.ts';

describe('storedResponse', () => {
  it('has the status and the fields, without those that are never stored; a body is optional', () => {
    const { status, value } = storedResponse({ status: 201, headers: { 'X-Id': '7', Date: 'now', via: ['a', 'b'] } });
    expect(status).toBe('201');
    const fields = ['X-Id', '7', 'via', 'a', 'via', 'b'];
    expect(decodeResponse(value as string)).toEqual({ status: 201, fields, body: new Uint8Array() });
    expect(
      decodeResponse(storedResponse({ status: 599, headers: undefined, body: undefined }).value as string),
    ).toEqual({
      status: 599,
      fields: [],
      body: new Uint8Array(),
    });
  });

  it('takes any name and value that HTTP allows', () => {
    const headers = { '__proto__.x': 'tab\tand \xff', "!#$%&'*+-.^_`|~9": '' };
    Object.defineProperty(headers, '__proto__', { value: '1', enumerable: true });
    const { fields } = decodeResponse(storedResponse({ status: 200, headers }).value as string) ?? {};
    expect(fields).toEqual(['__proto__.x', 'tab\tand \xff', "!#$%&'*+-.^_`|~9", '', '__proto__', '1']);
  });

  it.each<[unknown, string]>([
    [undefined, 'response: must be a plain object (expected status, headers or body), got undefined'],
    [new Response('x'), 'response: must be a plain object (expected status, headers or body), got an object'],
    [{ status: 200, header: {} }, 'response.header: unknown option (expected status, headers or body), got an object'],
    [{}, 'response.status: must be a whole number from 200 to 599, got undefined'],
    [{ status: '201' }, 'response.status: must be a whole number from 200 to 599, got "201"'],
    [{ status: 101 }, 'response.status: must be a whole number from 200 to 599, got 101'],
    [{ status: 600 }, 'response.status: must be a whole number from 200 to 599, got 600'],
    [{ status: 200.5 }, 'response.status: must be a whole number from 200 to 599, got 200.5'],
    [{ status: 200, headers: new Headers() }, 'response.headers: must be a plain object, got an object'],
    [{ status: 200, headers: ['a', 'b'] }, 'response.headers: must be a plain object, got an array'],
    [{ status: 200, headers: null }, 'response.headers: must be a plain object, got null'],
    [{ status: 200, headers: { '': 'x' } }, 'response.headers: every name must be a token of RFC 9110, got ""'],
    [{ status: 200, headers: { 'a b': 'x' } }, 'response.headers: every name must be a token of RFC 9110, got "a b"'],
    [{ status: 200, headers: { 'a:': 'x' } }, 'response.headers: every name must be a token of RFC 9110, got "a:"'],
    [{ status: 200, headers: { a: 'x\r\nb: 1' } }, 'beyond Latin-1, got a string'],
    [{ status: 200, headers: { a: ['x', '\u20ac'] } }, 'response.headers["a"]: must be a string without control'],
    [{ status: 200, headers: { a: 7 } }, 'beyond Latin-1, got 7'],
    [{ status: 200, headers: { a: undefined } }, 'beyond Latin-1, got undefined'],
    [{ status: 200, body: { id: 7 } }, 'response.body: must be a string, a Uint8Array or undefined, got an object'],
    [{ status: 200, body: null }, 'response.body: must be a string, a Uint8Array or undefined, got null'],
    [{ status: 200, body: new ArrayBuffer(1) }, 'response.body: must be a string, a Uint8Array or undefined'],
    [{ status: 204, body: 'sent' }, 'response.body: must be empty with status 204, got a body of 4 B'],
    [{ status: 304, body: Uint8Array.of(1) }, 'response.body: must be empty with status 304, got a body of 1 B'],
  ])('%o is an OptionError', (response, message) => {
    const write = () => storedResponse(response as never);
    expect(write).toThrow(expect.objectContaining({ code: 'invalid_option' }));
    expect(write).toThrow(message);
  });
});
