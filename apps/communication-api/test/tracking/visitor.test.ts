import { expect, test } from 'vitest';
import { visitorOf } from '../../src/tracking/visitor.ts';

const CHROME =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36';
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148';

test.each([
  ['person', CHROME],
  ['person', IPHONE],
  [
    'person',
    'Mozilla/5.0 (Linux; Android 13; CUBOT P80) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36',
  ],
  ['person', 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.5.0'],
  [
    'person',
    'Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; WOW64; Trident/7.0; Microsoft Outlook 16.0.5000; ms-office)',
  ],
  ['mail_proxy', 'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)'],
  ['mail_proxy', 'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html'],
  ['mail_proxy', 'Mozilla/5.0'],
  ['scanner', ''],
  ['scanner', 'node'],
  ['scanner', 'curl/8.5.0'],
  ['scanner', 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'],
  ['scanner', 'python-requests/2.32.3'],
  [
    'scanner',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/131.0.0.0 Safari/537.36',
  ],
  ['scanner', 'Microsoft Office Existence Discovery'],
  ['scanner', 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)'],
])('a %s is known by its user agent: %s', (expected, agent) => {
  expect(visitorOf('GET', { 'user-agent': agent })).toBe(expected);
});

test('a request that only looks, or that a browser makes in advance, is not a person', () => {
  expect(visitorOf('HEAD', { 'user-agent': CHROME })).toBe('scanner');
  expect(visitorOf('GET', { 'user-agent': CHROME, 'sec-purpose': 'prefetch;prerender' })).toBe('scanner');
  expect(visitorOf('GET', { 'user-agent': CHROME, purpose: 'prefetch' })).toBe('scanner');
  expect(visitorOf('GET', {})).toBe('scanner');
});
