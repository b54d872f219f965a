/** `rediss://` with a user of Redis' ACL: which servers are trusted, which are refused, and what is never logged. */

import { eventually } from 'headgate-testbed/raw-http';
import { tell } from 'headgate-testbed/redis-cluster';
import { startTlsRedis, type TlsServer } from 'headgate-testbed/redis-tls';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Config, configOf, type Gateway, runHeadgate, startGateway, writeConfig } from '../support/gateway.ts';

const CHATS = '/api/v1/chats?account_id=';
const trusted = process.env.NODE_EXTRA_CA_CERTS;
let redis: TlsServer;
let upstream: Upstream;
beforeAll(async () => {
  redis = await startTlsRedis();
  await tell(redis.port, 'ACL', 'SETUSER', 'gate', 'on', '>s3cret', '~*', '&*', '+@all');
  await tell(redis.port, 'ACL', 'SETUSER', 'mute', 'on', '>s3cret', '~*', '&*', '+@all', '-@scripting');
  upstream = await startUpstream();
  // The started gateways get it through the environment.
  process.env.NODE_EXTRA_CA_CERTS = redis.certFile;
});
afterAll(async () => {
  setTrust(trusted);
  await redis.stop();
});

function setTrust(file: string | undefined): void {
  if (file === undefined) delete process.env.NODE_EXTRA_CA_CERTS;
  else process.env.NODE_EXTRA_CA_CERTS = file;
}

const configFor = (user: string, password = 's3cret'): Config =>
  configOf(upstream.url, {
    store: `rediss://${user}:${password}@127.0.0.1:${redis.tlsPort}/2`,
    storeDeadlineMs: 2_000,
    limits: { default: { allMethods: ['4/1h'] } },
  });
const health = async (gateway: Gateway) => JSON.parse((await gateway.ask('GET', '/healthz')).text).status;
const doctor = (config: Config) => runHeadgate(['doctor', '--config', writeConfig(config)]);

describe('a server whose certificate is trusted', () => {
  it('two gateways share one allowance there, in the named database', async () => {
    const gateways = [await startGateway(configFor('gate')), await startGateway(configFor('gate'))];
    await eventually(async () => (await Promise.all(gateways.map(health))).every((state) => state === 'ok'), 'health');
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) {
      statuses.push((await (gateways[i % 2] as Gateway).ask('GET', `${CHATS}acc_1`)).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
    // The counters, the list of processes that obey changes of limits, and the details of each of the two processes.
    expect(await tell(redis.port, 'INFO', 'keyspace')).toMatch(/^db2:keys=4,expires=4/m);
    for (const gateway of gateways) {
      expect((await gateway.stop()).code).toBe(0);
      expect(gateway.output()).not.toContain('s3cret');
    }
  });

  it('doctor reports no problem', async () => {
    const { code, stdout } = await doctor(configFor('gate'));
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/ok +reachable[\s\S]*ok +scripts/) });
  });

  it('doctor reports what the user may not do', async () => {
    const { code, stdout } = await doctor(configFor('mute'));
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringMatching(/fault +scripts .*NOPERM/) });
  });

  async function degraded(user: string, password: string): Promise<string> {
    const gateway = await startGateway(configFor(user, password));
    const { status, headers } = await gateway.ask('GET', `${CHATS}acc_2`);
    expect([status, headers['x-ratelimit-limit']]).toEqual([200, undefined]);
    const isWarning = ({ level, msg }: Record<string, unknown>): boolean =>
      level === 40 && /redis|store/.test(String(msg));
    await eventually(() => gateway.log().some(isWarning), 'the warning');
    await gateway.stop();
    return gateway.output();
  }

  let ofRefused: Promise<string> | undefined;
  const outputOfRefused = (): Promise<string> => {
    ofRefused ??= degraded('gate', 'wr0ng');
    return ofRefused;
  };

  it('S17: with a user who may not run scripts it serves degraded and logs that, without the password', async () => {
    expect(await degraded('mute', 's3cret')).not.toContain('s3cret');
  });

  it('S17: with a wrong password it serves degraded and logs that', async () => {
    expect(await outputOfRefused()).toContain('WRONGPASS');
  });

  // The client's error has the command, and the command has the password.
  it('a wrong password is not logged', async () => {
    expect(await outputOfRefused()).not.toContain('wr0ng');
  });
});

it('a server with an untrusted certificate counts as down: the gateway never connects to it', async () => {
  setTrust(trusted);
  onTestFinished(() => setTrust(redis.certFile));
  const [gateway, { code, all }] = await Promise.all([startGateway(configFor('gate')), doctor(configFor('gate'))]);
  expect(await health(gateway)).toBe('degraded');
  expect((await gateway.ask('GET', `${CHATS}acc_3`)).headers['x-ratelimit-limit']).toBeUndefined();
  expect({ code, all }).toEqual({ code: 1, all: expect.stringMatching(/fault +reachable .*certificate/i) });
  expect(all).not.toContain('s3cret');
  await gateway.stop();
});
