import { Resolver } from 'node:dns/promises';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from 'headgate-testbed/redis-server';
import { beforeEach, expect, test } from 'vitest';
import { createLookup, type LookupParts } from '../../src/security/lookup.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { startDnsServer } from '../support/dns-server.ts';

const dns = await startDnsServer();
const folder = mkdtempSync(join(tmpdir(), 'headgate-hosts-'));
cleanUpLater(() => rmSync(folder, { recursive: true }));
const hostsFile = join(folder, 'hosts');
writeFileSync(
  hostsFile,
  '# names\n127.0.0.9\tMail.Example.Test  mail # 127.0.0.8 commented.test\n\n::1 mail\nbroken\n',
);

/** @param timeout in milliseconds: long enough for a busy machine, unless the server is silent */
function askDns(timeout = 10_000): Resolver {
  const resolver = new Resolver({ timeout, tries: 1 });
  resolver.setServers([dns.address]);
  return resolver;
}

const asked: string[] = [];
const parts: LookupParts = {
  hostsFile,
  resolver: () => askDns(),
  system: async (name) => {
    asked.push(name);
    if (name === 'local') return ['192.168.1.5'];
    throw new Error('ENOTFOUND');
  },
};
const lookup = createLookup(parts);

beforeEach(() => {
  dns.records = {};
  dns.isSilent = false;
  asked.length = 0;
});

test('a name of the hosts file is not asked for elsewhere', async () => {
  const before = dns.queries.length;
  expect([await lookup('mail.example.test'), await lookup('mail')]).toEqual([['127.0.0.9'], ['127.0.0.9', '::1']]);
  expect([dns.queries.length - before, asked]).toEqual([0, []]);
});

test('the name servers give all addresses of both kinds', async () => {
  dns.records = {
    'A both.test': ['192.0.2.1', '192.0.2.2'],
    'AAAA both.test': ['2606:4700:0000:0000:0000:0000:0000:1111'],
    'AAAA six.test': ['0000:0000:0000:0000:0000:0000:0000:0001'],
    'A six.test': [],
  };
  expect(await lookup('both.test')).toEqual(['192.0.2.1', '192.0.2.2', '2606:4700::1111']);
  expect(await lookup('six.test')).toEqual(['::1']);
  expect(asked).toEqual([]);
});

test('a name that they do not know is looked up by the system, for example one of the local network', async () => {
  expect(await lookup('local')).toEqual(['192.168.1.5']);
  await expect(lookup('commented.test')).rejects.toThrow('ENOTFOUND');
});

test('a name server that does not answer keeps no thread of the system busy', async () => {
  dns.isSilent = true;
  const impatient = createLookup({ ...parts, resolver: () => askDns(50) });
  await expect(Promise.all(['one.test', 'two.test', 'three.test'].map(impatient))).rejects.toMatchObject({
    code: 'ETIMEOUT',
  });
  expect(asked).toEqual([]);
});

test('the system looks one name up at a time, and 20 wait at most', async () => {
  const free: (() => void)[] = [];
  let running = 0;
  let most = 0;
  const slow = createLookup({
    hostsFile,
    resolver: () => askDns(),
    system: async () => {
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => free.push(resolve));
      running -= 1;
      return ['127.0.0.1'];
    },
  });
  let refused = 0;
  const outcomes = Array.from({ length: 30 }, (_, i) =>
    slow(`n${i}.test`).then(
      () => 'found',
      () => {
        refused += 1;
        return 'refused';
      },
    ),
  );
  // None ends before all have asked, so it does not matter how fast the name server answers.
  await until(() => refused === 10, 'the rest is refused');
  for (let ended = 0; ended < 20; ended++) {
    await until(() => free.length > 0, 'the next one is looked up');
    free.shift()?.();
  }
  expect((await Promise.all(outcomes)).filter((outcome) => outcome === 'found')).toHaveLength(20);
  expect(most).toBe(1);
});

test('the system’s own files and name servers are used by default', async () => {
  expect(await createLookup()('localhost')).toContain('127.0.0.1');
  await expect(createLookup()('no-such-name.invalid')).rejects.toThrow();
});
