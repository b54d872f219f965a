import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseAutoconfig } from '../../../src/providers/imap/autoconfig.ts';
import { createDiscovery, type Discover, type Discovered } from '../../../src/providers/imap/discovery.ts';
import { Egress } from '../../../src/security/egress.ts';
import { MailRecords } from '../../../src/security/mail-records.ts';
import type { Net } from '../../../src/security/net.ts';
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts';
import { startHttps } from '../../support/outside-servers.ts';

/** The files of domains, by address without the query. */
let files: Record<string, { readonly status?: number; readonly body: string | Buffer }> = {};
/** Addresses that were fetched, with the query. */
let fetched: string[] = [];
let dns: DnsServer;
let net: Net;
let discover: Discover;

beforeAll(async () => {
  const { port } = await startHttps((request, response) => {
    const { status = 200, body } = files[`${request.headers['x-test-place']}`] ?? { status: 404, body: '' };
    response.writeHead(status, { location: 'https://autoconfig.elsewhere.test/' }).end(body);
  });
  const direct = new Egress({ policy: 'off' }).through(undefined);
  net = {
    connect: () => Promise.reject(new Error('Discovery connects to no mail server.')),
    // All hosts are one server of the test, which cannot have their port.
    fetch: (url, init) => {
      const { protocol, host, pathname, search } = new URL(url);
      fetched.push(`${protocol}//${host}${pathname}${search}`);
      return direct.fetch(`https://localhost:${port}/`, {
        ...init,
        headers: { 'x-test-place': `${protocol}//${host}${pathname}` },
      });
    },
  };
  dns = await startDnsServer();
  discover = createDiscovery(new MailRecords(dns.resolver));
});

beforeEach(() => {
  files = {};
  fetched = [];
  dns.records = {};
  dns.isSilent = false;
});

const find = (address: string, signal = AbortSignal.timeout(20_000)): Promise<Discovered> =>
  discover(address, net, signal);

const server = (host: string, port: number, encryption: string, user = 'ann@example.test') => ({
  host,
  port,
  encryption,
  user,
});

const AUTOCONFIG = 'https://autoconfig.example.test/mail/config-v1.1.xml';
const WELL_KNOWN = 'https://example.test/.well-known/autoconfig/mail/config-v1.1.xml';

const incoming = (host: string, { type = 'imap', port = 993, socket = 'SSL', rest = '' } = {}) => `
  <incomingServer type="${type}"><hostname>${host}</hostname><port>${port}</port><socketType>${socket}</socketType>
  <username>%EMAILADDRESS%</username>${rest || '<authentication>password-cleartext</authentication>'}</incomingServer>`;
const outgoing = (host: string, { port = 465, socket = 'SSL', user = '%EMAILADDRESS%' } = {}) => `
  <outgoingServer type="smtp"><hostname>${host}</hostname><port>${port}</port><socketType>${socket}</socketType>
  <username>${user}</username><authentication>password-cleartext</authentication></outgoingServer>`;
const file = (...servers: string[]): string => `<?xml version="1.0" encoding="UTF-8"?>
<clientConfig version="1.1"><emailProvider id="example.test"><domain>example.test</domain>
<displayName>An example &amp; test</displayName>${servers.join('')}</emailProvider></clientConfig>`;
const GOOD = file(incoming('imap.host.test'), outgoing('smtp.host.test'));

describe('a large host is known by its domain', () => {
  test.each([
    ['ann@gmx.de', server('imap.gmx.net', 993, 'tls', 'ann@gmx.de'), server('mail.gmx.net', 465, 'tls', 'ann@gmx.de')],
    [
      'ann@ICLOUD.com',
      server('imap.mail.me.com', 993, 'tls', 'ann'),
      server('smtp.mail.me.com', 587, 'starttls', 'ann@ICLOUD.com'),
    ],
  ])('%s', async (address, imap, smtp) => {
    expect(await find(address)).toEqual({ kind: 'servers', settings: { imap, smtp } });
    expect([fetched, dns.queries]).toEqual([[], []]);
  });

  test.each([
    ['ann@gmail.com', 'google'],
    ['ann@hotmail.com', 'outlook'],
  ])('%s signs in at its host', async (address, host) => {
    expect(await find(address)).toEqual({ kind: 'sign-in', host });
  });
});

describe('the file of a domain', () => {
  test.each([AUTOCONFIG, WELL_KNOWN])('%s', async (place) => {
    files = { [place]: { body: GOOD } };
    expect(await find('ann@example.test')).toEqual({
      kind: 'servers',
      settings: { imap: server('imap.host.test', 993, 'tls'), smtp: server('smtp.host.test', 465, 'tls') },
    });
    expect(fetched.sort()).toEqual([`${AUTOCONFIG}?emailaddress=ann%40example.test`, WELL_KNOWN]);
  });

  test('with patterns for the user and the host', async () => {
    const servers = [incoming('imap.%EMAILDOMAIN%'), outgoing('smtp.host.test', { user: '%EMAILLOCALPART%' })];
    files = { [AUTOCONFIG]: { body: file(...servers) } };
    expect(await find('ann$&@example.test')).toEqual({
      kind: 'servers',
      settings: {
        imap: server('imap.example.test', 993, 'tls', 'ann$&@example.test'),
        smtp: server('smtp.host.test', 465, 'tls', 'ann$&'),
      },
    });
  });

  test('that names a server of Google leads to Google', async () => {
    files = { [AUTOCONFIG]: { body: file(incoming('imap.gmail.com'), outgoing('smtp.gmail.com')) } };
    expect(await find('ann@example.test')).toEqual({ kind: 'sign-in', host: 'google' });
  });

  test.each([
    ['is missing', { status: 404, body: GOOD }],
    ['leads elsewhere', { status: 302, body: GOOD }],
    ['is too long', { body: GOOD + ' '.repeat(65_536) }],
    ['is no XML', { body: Buffer.from([0, 255, 254, 1]) }],
  ])('that %s is not used', async (_, answer) => {
    files = { [AUTOCONFIG]: answer };
    expect(await find('ann@example.test')).toMatchObject({ kind: 'guess', isKnown: false });
  });

  test('as apps/communication-api/docs/imap.md shows it', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/imap.md'), 'utf8');
    const [, xml = ''] = /```xml\n(.*?)```/s.exec(page) ?? [];
    expect(parseAutoconfig(xml)).toEqual({
      imap: server('imap.example.org', 993, 'tls', '%EMAILADDRESS%'),
      smtp: server('smtp.example.org', 465, 'tls', '%EMAILADDRESS%'),
    });
  });

  test('is read: the first server that takes a password over TLS counts', () => {
    const servers = [
      incoming('pop.host.test', { type: 'pop3', port: 995 }),
      incoming('plain.host.test', { port: 143, socket: 'plain' }),
      incoming('oauth.host.test', { rest: '<authentication>OAuth2</authentication>' }),
      incoming('starttls.host.test', {
        port: 143,
        socket: 'STARTTLS',
        rest: '<authentication>OAuth2</authentication><authentication>password-cleartext</authentication>',
      }),
      incoming('later.host.test'),
      outgoing('bad host'),
      outgoing('smtp.host.test', { port: 587, socket: 'STARTTLS' }),
    ];
    expect(parseAutoconfig(file(...servers))).toEqual({
      imap: server('starttls.host.test', 143, 'starttls', '%EMAILADDRESS%'),
      smtp: server('smtp.host.test', 587, 'starttls', '%EMAILADDRESS%'),
    });
  });

  test.each([
    ['no server for sending', file(incoming('imap.host.test'))],
    [
      'a bomb of entities',
      `<!DOCTYPE a [<!ENTITY a "a"><!ENTITY b "&a;&a;">]>${file(incoming('&b;'), outgoing('&b;'))}`,
    ],
    [
      'a file of this machine',
      `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>${file(incoming('&x;'), outgoing('&x;'))}`,
    ],
    ['a line break in a host', file(incoming('imap.host.test\r\nx'), outgoing('smtp.host.test'))],
    ['a port that is none', file(incoming('imap.host.test', { port: 1_000_000 }), outgoing('smtp.host.test'))],
    ['elements that never end', '<incomingServer type="imap">'.repeat(10_000)],
    ['an HTML page', '<!doctype html><title>Not found</title><p>Sorry</p>'],
  ])('with %s names nothing', (_, text) => {
    expect(parseAutoconfig(text)).toBeUndefined();
  });
});

describe('SRV records', () => {
  const NO_FILE = { kind: 'guess', isKnown: false };

  test('in the domain itself are used', async () => {
    dns.records = {
      'SRV _imaps._tcp.example.test': ['20 1 993 backup.example.test', '10 1 993 imap.example.test'],
      'SRV _imap._tcp.example.test': ['0 1 143 other.example.test'],
      'SRV _submission._tcp.example.test': ['0 1 587 smtp.example.test'],
    };
    expect(await find('ann@example.test')).toEqual({
      kind: 'servers',
      settings: { imap: server('imap.example.test', 993, 'tls'), smtp: server('smtp.example.test', 587, 'starttls') },
    });
  });

  test('that lead to another domain need the consent of the user, since DNS can be forged', async () => {
    dns.records = {
      'SRV _imaps._tcp.example.test': ['0 1 993 imap.host.test'],
      'SRV _submissions._tcp.example.test': ['0 1 465 smtp.example.test'],
    };
    expect(await find('ann@example.test')).toEqual({
      kind: 'guess',
      isKnown: true,
      settings: { imap: server('imap.host.test', 993, 'tls'), smtp: server('smtp.example.test', 465, 'tls') },
    });
  });

  test('that say that there is no such service', async () => {
    dns.records = { 'SRV _imaps._tcp.example.test': ['0 0 0 .'] };
    expect(await find('ann@example.test')).toMatchObject(NO_FILE);
  });

  test('do not count if the domain has a file', async () => {
    files = { [AUTOCONFIG]: { body: GOOD } };
    dns.records = { 'SRV _imaps._tcp.example.test': ['0 1 993 imap.example.test'] };
    expect(await find('ann@example.test')).toMatchObject({ settings: { imap: { host: 'imap.host.test' } } });
  });
});

describe('MX records', () => {
  test.each([
    ['10 aspmx.l.google.com', { kind: 'sign-in', host: 'google' }],
    ['0 example-test.mail.protection.outlook.com', { kind: 'sign-in', host: 'outlook' }],
    [
      '10 in1-smtp.messagingengine.com',
      {
        kind: 'servers',
        settings: { imap: server('imap.fastmail.com', 993, 'tls'), smtp: server('smtp.fastmail.com', 465, 'tls') },
      },
    ],
    ['10 notgoogle.com', { kind: 'guess', isKnown: false }],
  ])('%s', async (record, expected) => {
    dns.records = { 'MX example.test': [record] };
    expect(await find('ann@example.test')).toMatchObject(expected);
  });
});

test('the own servers of a domain come before its MX records, and those before the servers of others', async () => {
  const mx = { 'MX example.test': ['10 in1-smtp.messagingengine.com'] };
  const srv = (domain: string) => ({
    'SRV _imaps._tcp.example.test': [`0 1 993 imap.${domain}`],
    'SRV _submissions._tcp.example.test': [`0 1 465 smtp.${domain}`],
  });
  dns.records = { ...mx, ...srv('example.test') };
  expect(await find('ann@example.test')).toMatchObject({ settings: { imap: { host: 'imap.example.test' } } });
  dns.records = { ...mx, ...srv('host.test') };
  expect(await find('ann@example.test')).toMatchObject({ settings: { imap: { host: 'imap.fastmail.com' } } });
});

describe('nothing is found', () => {
  const usual = { imap: server('imap.example.test', 993, 'tls'), smtp: server('smtp.example.test', 465, 'tls') };

  test('then the usual names are shown', async () => {
    expect(await find('ann@example.test')).toEqual({ kind: 'guess', isKnown: false, settings: usual });
  });

  test('if DNS does not answer, soon', async () => {
    dns.isSilent = true;
    expect(await find('ann@example.test')).toEqual({ kind: 'guess', isKnown: false, settings: usual });
  });

  test('if the caller does not wait', async () => {
    dns.isSilent = true;
    expect(await find('ann@example.test', AbortSignal.abort())).toMatchObject({ kind: 'guess' });
  });

  test.each(['ann@[127.0.0.1]', 'ann@127.0.0.1', 'ann@localhost', 'ann@a..b', 'ann@exam/ple.test', 'ann@x.test#y'])(
    'if %s has no domain of the internet: nothing is asked',
    async (address) => {
      const asked = dns.queries.length;
      expect(await find(address)).toMatchObject({ kind: 'guess', settings: { imap: { host: '' } } });
      expect([fetched, dns.queries.length]).toEqual([[], asked]);
    },
  );

  test('a domain with other letters is asked by its ASCII name', async () => {
    await find('ann@bücher.example.test');
    expect(fetched[0]).toContain('https://autoconfig.xn--bcher-kva.example.test/');
  });
});
