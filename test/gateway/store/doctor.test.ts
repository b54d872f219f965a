/** What `headgate doctor` says of a store: reachable, and fit for the gateway (contract.md, `store`). */
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { checkConfig } from '../../../src/gateway/config/config.ts';
import { examineStore, type Finding, findingsTable } from '../../../src/gateway/store/doctor.ts';
import { bulk, type Says, startFakeRedis } from '../../support/fake-redis.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';

const of = (store: string): Promise<Finding[]> => examineStore(checkConfig({ store }, 'test'));
const verdicts = (findings: readonly Finding[]) => findings.map(({ verdict, subject }) => `${subject}: ${verdict}`);

async function ofFake(says: Says): Promise<Map<string, Finding>> {
  const port = await startFakeRedis(says);
  return new Map((await of(`redis://127.0.0.1:${port}`)).map((finding) => [finding.subject, finding]));
}

describe('a healthy store', () => {
  it('in memory: there is nothing to reach', async () => {
    expect(verdicts(await of('memory'))).toEqual(['store: ok']);
  });

  it('of one server', async () => {
    const findings = await of(`redis://127.0.0.1:${inject('redis').port}/0`);
    expect(verdicts(findings)).toEqual(['reachable: ok', 'version: ok', 'eviction: ok', 'clock: ok', 'scripts: ok']);
    expect(findings[0]?.text).toBe('1 server(s)');
  });

  it('of a cluster: every master is looked at', async () => {
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

  it('who may not ask: a warning, but a fault where scripts are forbidden', async () => {
    const findings = await of(`redis://gate:s3cret@127.0.0.1:${server.port}`);
    expect(verdicts(findings)).toEqual([
      'reachable: ok',
      'version: warning',
      'eviction: warning',
      'clock: ok',
      'scripts: fault',
    ]);
    for (const { subject, text } of findings) {
      if (['version', 'eviction', 'scripts'].includes(subject)) expect(text).toMatch(/^could not be looked at: NOPERM/);
    }
  });

  it('whose password is wrong: a fault, and the password is not told', async () => {
    const findings = await of(`redis://gate:wr0ng@127.0.0.1:${server.port}`);
    expect(verdicts(findings)).toEqual(['reachable: fault']);
    expect(findingsTable(findings)).not.toContain('wr0ng');
  });

  it('and an eviction policy that would grant allowances: a warning that says what to set', async () => {
    const findings = await of(`redis://127.0.0.1:${server.port}`);
    const eviction = findings.find(({ subject }) => subject === 'eviction');
    expect(eviction).toMatchObject({ verdict: 'warning', text: expect.stringMatching(/^allkeys-lru: .*noeviction$/) });
  });
});

describe('a fault', () => {
  it('nobody there: the reason stands in the table', async () => {
    const findings = await of('redis://user:s3cret@127.0.0.1:1/0');
    expect(findingsTable(findings)).toMatch(
      /^fault {3}reachable {2}.*ECONNREFUSED.*: the gateway would serve degraded\n$/,
    );
    expect(findingsTable(findings)).not.toContain('s3cret');
  });

  it('somebody there who does not answer: no answer in time', async () => {
    const findings = await ofFake(([name]) => (name === 'ping' ? '' : undefined));
    expect(findings.get('reachable')).toMatchObject({
      verdict: 'fault',
      text: expect.stringMatching(/^no answer within 3000 ms/),
    });
  });

  it('too old a version, and a clock that is far', async () => {
    const findings = await ofFake(([name, section]) => {
      if (name === 'time') return `*2\r\n${bulk('1000')}${bulk('0')}`;
      return name === 'info' && section === 'server' ? bulk('redis_version:5.0.14\r\n') : undefined;
    });
    expect(findings.get('version')).toMatchObject({ verdict: 'fault', text: '5.0.14: Redis 6.0 or newer is needed' });
    expect(findings.get('clock')).toMatchObject({ verdict: 'warning', text: expect.stringMatching(/^\d{9,} s from/) });
  });

  it('a server that tells neither version nor policy', async () => {
    const findings = await ofFake(([name, section]) =>
      name === 'info' && section !== undefined ? bulk('nothing\r\n') : undefined,
    );
    expect(findings.get('version')).toMatchObject({ verdict: 'fault', text: expect.stringMatching(/^unknown: /) });
    expect(findings.get('eviction')).toMatchObject({ verdict: 'warning', text: expect.stringMatching(/^unknown: /) });
  });

  it('a cluster that has lost slots since it was connected to', async () => {
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
