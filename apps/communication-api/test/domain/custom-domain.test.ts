import { expect, test } from 'vitest';
import { customHost, recordsOf } from '../../src/domain/custom-domain.ts';

test.each([
  ['connect.app.example', 'connect.app.example'],
  ['Connect.APP.example.', 'connect.app.example'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['a-b.c', 'a-b.c'],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
])('%s is the host %s', (text, host) => expect(customHost(text)).toBe(host));

test.each([
  ...[
    '',
    'localhost',
    'example',
    '.',
    'a..b',
    '.a.b',
    'a.b..',
    '*.app.example',
    '_a.example',
    '-a.example',
    'a-.example',
  ],
  ...[
    '127.0.0.1',
    '0x7f.1',
    '1.2.3.4.5',
    '[::1]',
    '::1',
    'a b.example',
    'a.example:443',
    'https://a.example',
    'a.example/b',
  ],
  ...[
    'a.example?b',
    'a@b.example',
    'a\r\nb.example',
    'a\0.example',
    `${'a'.repeat(64)}.example`,
    `${'a.'.repeat(120)}example`,
  ],
])('%j is no host', (text) => expect(customHost(text)).toBeUndefined());

test('the records of a domain', () => {
  expect(recordsOf('connect.app.example', 'auth.example.com', 'abc')).toEqual([
    { type: 'CNAME', name: 'connect.app.example', value: 'auth.example.com' },
    { type: 'TXT', name: '_communication-api.connect.app.example', value: 'ca-verify=abc' },
  ]);
});
