import type { IncomingHttpHeaders } from 'node:http';

/** The client that asked for a pixel or a link: a person, the image proxy of a mail service, or a checking program. */
export type Visitor = 'person' | 'mail_proxy' | 'scanner';

/** Apple's proxy calls itself `Mozilla/5.0`, and nothing else. */
const MAIL_PROXY = /GoogleImageProxy|ggpht\.com|YahooMailProxy|^Mozilla\/5\.0$/i;
const SCANNERS = [
  ...[
    '(?<!cu)bot',
    'crawl',
    'spider',
    'scan',
    'preview',
    'prefetch',
    'monitor',
    'check',
    'fetch',
    'headless',
    'phantom',
  ],
  ...['curl', 'wget', 'httpie', 'python', 'java/', 'go-http', 'okhttp', 'axios', 'undici', 'libwww', 'perl', 'ruby'],
  ...['php', 'apache-http', 'winhttp', 'powershell', 'postman', 'safelinks', 'barracuda', 'mimecast', 'proofpoint'],
  ...['symantec', 'trendmicro', 'fireeye', 'sophos', 'zscaler', 'forcepoint', 'office existence discovery'],
  ...['facebookexternalhit', 'whatsapp', 'telegram', 'slack', 'skypeuri', 'embedly', 'validator', 'google-read-aloud'],
];
const SCANNER = new RegExp(SCANNERS.join('|'), 'i');
/** Fields that a browser sends when it loads a page in advance. */
const PREFETCH = ['purpose', 'sec-purpose', 'x-purpose', 'x-moz'];

/** Guesses by the method and the header fields of a request. A program that looks like a browser counts as a person. */
export function visitorOf(method: string, headers: IncomingHttpHeaders): Visitor {
  const agent = headers['user-agent'] ?? '';
  if (method === 'HEAD' || PREFETCH.some((name) => /prefetch|prerender|preview/i.test(String(headers[name] ?? ''))))
    return 'scanner';
  if (MAIL_PROXY.test(agent)) return 'mail_proxy';
  return agent === '' || agent === 'node' || SCANNER.test(agent) ? 'scanner' : 'person';
}
