/** What `headgate doctor` reports about a store: whether it can be reached, and does what the gateway needs. */

import { bulk, type Says, startFakeRedis } from 'headgate-testbed/fake-redis';
import { type RedisServer, startRedis } from 'headgate-testbed/redis-server';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { examineStore } from '../../src/store/doctor.ts';
import { type Finding, findingsTable } from '../../src/store/finding.ts';

const of = (store: string): Promise<Finding[]> => examineStore(checkConfig({ store }, 'test'));
const verdicts = (findings: readonly Finding[]) => findings.map(({ verdict, subject }) => `${subject}: ${verdict}`);

async function ofFake(says: Says): Promise<Map<string, Finding>> {
  const port = await startFakeRedis(says);
  return new Map((await of(`redis://127.0.0.1:${port}`)).map((finding) => [finding.subject, finding]));
}

describe('a healthy store', () => {
  it('in memory: no server to check', async () => {
    expect(verdicts(await of('memory'))).toEqual(['store: ok']);
  });

  it('on one server', async () => {
    const findings = await of(`redis://127.0.0.1:${inject('redis').port}/0`);
    expect(verdicts(findings)).toEqual([
      'reachable: ok',
      'version: ok',
      'eviction: ok',
      'persistence: ok',
      'clock: ok',
      'scripts: ok',
    ]);
    expect(findings[0]?.text).toBe('1 server(s)');
  });

  it('on a cluster: every master is checked', async () => {
    const hosts = inject('redis').clusterPorts.map((port) => `127.0.0.1:${port}`);
    const findings = await of(`redis-cluster://${hosts.join()}`);
    expect(verdicts(findings).slice(0, 2)).toEqual(['reachable: ok', 'cluster: ok']);
    expect(findings.filter(({ subject }) => subject === 'scripts')).toHaveLength(3);
    expect(findings.every(({ verdict }) => verdict === 'ok')).toBe(true);
  });
});

describe('with a user', () => {
  let server: RedisServer;
  beforeAll(async () => {
    const may = ['~*', '&*', '+@all', '-info', '-eval'];
    server = await startRedis('--user', 'gate', 'on', '>s3cret', ...may, '--maxmemory-policy', 'allkeys-lru');
  });
  afterAll(() => server.stop());

  it('without permission for INFO: a warning; without permission for scripts: a fault', async () => {
    const findings = await of(`redis://gate:s3cret@127.0.0.1:${server.port}`);
    expect(verdicts(findings)).toEqual([
      'reachable: ok',
      'version: warning',
      'eviction: warning',
      'persistence: warning',
      'clock: ok',
      'scripts: fault',
    ]);
    for (const { subject, text } of findings) {
      if (['version', 'eviction', 'persistence', 'scripts'].includes(subject))
        expect(text).toMatch(/^check failed: NOPERM/);
    }
  });

  it('with a wrong password: a fault that does not show the password', async () => {
    const findings = await of(`redis://gate:wr0ng@127.0.0.1:${server.port}`);
    expect(verdicts(findings)).toEqual(['reachable: fault']);
    expect(findingsTable(findings)).not.toContain('wr0ng');
  });

  it('with an eviction policy that would lose counters: a warning with the right policy', async () => {
    const findings = await of(`redis://127.0.0.1:${server.port}`);
    const eviction = findings.find(({ subject }) => subject === 'eviction');
    expect(eviction).toMatchObject({ verdict: 'warning', text: expect.stringMatching(/^allkeys-lru: .*noeviction$/) });
  });
});

describe('persistence', () => {
  const routes = [{ route: 'POST /a', account: 'query.account_id', idempotent: true }];
  const keys = [{ token: 'a-token', application: 'app' }];
  const found = async (options: readonly string[], config: object) => {
    const server = await startRedis(...options);
    const limits = { default: { allMethods: ['1/1m'] } };
    const store = `redis://127.0.0.1:${server.port}`;
    const findings = await examineStore(checkConfig({ store, keys, limits, ...config }, 'test'));
    await server.stop();
    return findings.find(({ subject }) => subject === 'persistence');
  };

  it('without an append-only file: a warning if a route is idempotent', async () => {
    const lost = expect.stringMatching(/^appendonly no: .* executed again; set appendonly yes$/);
    expect(await found([], { routes })).toMatchObject({ verdict: 'warning', text: lost });
    expect(await found([], {})).toMatchObject({ verdict: 'ok', text: expect.stringMatching(/forgets the counters$/) });
  });

  it('with an append-only file: fine', async () => {
    expect(await found(['--appendonly', 'yes'], { routes })).toMatchObject({ verdict: 'ok', text: 'appendonly yes' });
  });
});

describe('a fault', () => {
  it('no server: the table has the reason', async () => {
    const findings = await of('redis://user:s3cret@127.0.0.1:1/0');
    expect(findingsTable(findings)).toMatch(
      /^fault {3}reachable {3}.*ECONNREFUSED.*: the gateway would serve degraded\n$/,
    );
    expect(findingsTable(findings)).not.toContain('s3cret');
  });

  it('a server that does not answer: no answer in time', async () => {
    const findings = await ofFake(([name]) => (name === 'ping' ? '' : undefined));
    expect(findings.get('reachable')).toMatchObject({
      verdict: 'fault',
      text: expect.stringMatching(/^no answer within 3000 ms/),
    });
  });

  it('a version that is too old, and a clock that is far away', async () => {
    const findings = await ofFake(([name, section]) => {
      if (name === 'time') return `*2\r\n${bulk('1000')}${bulk('0')}`;
      return name === 'info' && section === 'server' ? bulk('redis_version:5.0.14\r\n') : undefined;
    });
    expect(findings.get('version')).toMatchObject({ verdict: 'fault', text: '5.0.14: Redis 6.0 or newer is needed' });
    expect(findings.get('clock')).toMatchObject({ verdict: 'warning', text: expect.stringMatching(/^\d{9,} s from/) });
  });

  it('a server that reports neither version nor policy', async () => {
    const findings = await ofFake(([name, section]) =>
      name === 'info' && section !== undefined ? bulk('nothing\r\n') : undefined,
    );
    expect(findings.get('version')).toMatchObject({ verdict: 'fault', text: expect.stringMatching(/^unknown: /) });
    expect(findings.get('eviction')).toMatchObject({ verdict: 'warning', text: expect.stringMatching(/^unknown: /) });
  });

  it('a cluster that has lost slots since the client connected', async () => {
    let asked = 0;
    const port = await startFakeRedis(([name, sub]) => {
      if (name !== 'cluster') return undefined;
      if (sub?.toLowerCase() === 'slots') {
        return `*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n${bulk('127.0.0.1')}:${port}\r\n${bulk('a'.repeat(40))}`;
      }
      asked += 1;
      return bulk(asked === 1 ? 'cluster_state:ok\r\n' : 'cluster_state:fail\r\n');
    });
    const findings = await of(`redis-cluster://127.0.0.1:${port}`);
    expect(findings.find(({ subject }) => subject === 'cluster')).toMatchObject({
      verdict: 'fault',
      text: 'cluster_state is not ok: some slots have no server',
    });
  });
});
