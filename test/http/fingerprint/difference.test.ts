import { field, file, multipart, multipartType } from 'headgate-testbed/bodies';
import { describe, expect, it } from 'vitest';
import { describeDifference } from '../../../src/http/fingerprint/difference.ts';
import { makeFingerprint } from '../../support/fingerprint-of.ts';

const parts = (...written: Parameters<typeof multipart>[0]['parts'][number][]) =>
  makeFingerprint(multipart({ boundary: 'b', parts: written }), multipartType('b'));
const json = (value: unknown) => makeFingerprint(JSON.stringify(value), 'application/json');
const text = (head: object, account?: string, body = 'x') =>
  makeFingerprint(body, 'text/plain', { head, ...(account === undefined ? {} : { account }) });

describe('I3: how two requests differ', () => {
  it.each([
    ['nothing', text({}), text({}), undefined],
    ['the query', text({ query: 'a' }), text({ query: 'b' }), 'the query differs'],
    ['the account', text({}, 'a'), text({}, 'b'), 'the account differs'],
    ['method and path', text({ method: 'PUT' }), text({ path: '/' }), 'the method and the path differ'],
    ['the type', text({ contentType: 'text/html' }), text({}), 'the content type differs'],
    ['bytes', text({}), text({}, undefined, 'y'), 'the body differs'],
    [
      'all',
      text({ query: 'a', contentType: 'a/b' }, 'a', 'z'),
      text({ path: '/', method: 'PUT' }, 'a'),
      'the method, the path, the query and 2 more differ',
    ],
    [
      'only the account, whatever else differs: it may be one that the caller must not reach',
      text({ query: 'a' }, 'a', 'z'),
      text({ path: '/', method: 'PUT' }, 'b'),
      'the account differs',
    ],
    ['a property', json({ a: 1, b: 2 }), json({ b: 3, a: 1 }), 'b differs'],
    ['properties', json({ a: 1 }), json({ b: 1 }), 'the body has other fields'],
    ['an array', json([1]), json([2]), 'the body differs'],
    ['the kind', json({ a: 1 }), makeFingerprint('{"a":1', 'application/json'), 'the body differs'],
    [
      'a pair',
      makeFingerprint('a=1&a=2', 'application/x-www-form-urlencoded'),
      makeFingerprint('a=1&a=3', 'application/x-www-form-urlencoded'),
      'a[1] differs',
    ],
    [
      'an attachment',
      parts(field('to', 'x'), file('attachments', 'a', '1'), file('attachments', 'b', '2')),
      parts(file('attachments', 'a', '1'), file('attachments', 'b', '3'), field('to', 'x')),
      'attachments[1] differs',
    ],
    [
      'the number of attachments and the query',
      makeFingerprint(multipart({ boundary: 'b', parts: [file('a', 'a', '1')] }), multipartType('b'), {
        head: { query: 'q' },
      }),
      parts(file('a', 'a', '1'), file('a', 'a', '1')),
      'the query differs, and the body has other fields',
    ],
  ])('is described: %s', (_, stored, current, expected) => {
    expect(describeDifference(stored.value, current)).toBe(expected);
  });

  it('is described without names of the stored request, and only with visible characters', () => {
    const stored = json({ 'a secret name': 1, x: 1 });
    expect(describeDifference(stored.value, json({ 'another name': 1, x: 1 }))).toBe('the body has other fields');
    const odd = `\r\n<b>\u0000${'x'.repeat(100)}`;
    const difference = describeDifference(json({ [odd]: 1 }).value, json({ [odd]: 2 }));
    expect(difference).toMatch(/^[\x20-\x7e]{1,80} differs$/);
    expect(describeDifference(json({ '': 1 }).value, json({ '': 2 }))).toBe('"" differs');
  });

  it('is not described in detail for another version, nor for more than 200 pieces', () => {
    expect(describeDifference('0.x', json({}))).toBe('the request differs');
    expect(describeDifference('nonsense', json({}))).toBe('the request differs');
    expect(describeDifference(`${json({}).value}x`, json({}))).toBe('the request differs');
    const many = (last: number) =>
      json(Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`k${i}`, i === 200 ? last : i])));
    expect(describeDifference(many(1).value, many(2))).toBe('the body differs');
  });
});
