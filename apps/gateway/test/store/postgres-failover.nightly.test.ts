/** The primary becomes read-only, or vanishes, and its name moves to another server; and TLS towards the server. */
import { chownSync, copyFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createCertificate } from 'headgate-testbed/certificate';
import { type PostgresServer, postgresUrl, startPostgres } from 'headgate-testbed/postgres-server';
import { eventually } from 'headgate-testbed/raw-http';
import { serverUser } from 'headgate-testbed/server-user';
import { startTcpProxy } from 'headgate-testbed/tcp-proxy';
import { startUpstream } from 'headgate-testbed/upstream';
import { Client } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { examineStore } from '../../src/store/doctor.ts';
import { findingsTable } from '../../src/store/finding.ts';
import { openStore } from '../../src/store/store.ts';
import { configOf, ratesOf } from '../support/gateway.ts';
import { openLog, startInProcess } from '../support/in-process.ts';
import { freshKey, keyedConfig, post } from '../support/keyed.ts';

const upstream = await startUpstream();

async function start(...options: string[]): Promise<PostgresServer> {
  const server = await startPostgres(...options);
  onTestFinished(() => server.stop());
  return server;
}

async function sql(server: PostgresServer, ...texts: string[]): Promise<void> {
  const client = new Client(server.url());
  await client.connect();
  for (const text of texts) await client.query(text);
  await client.end();
}

describe.each(['is read-only', 'is silent'])('the old primary %s', (fault) => {
  it('S17: a gateway that is running goes on with the new one', async () => {
    const [old, next] = await Promise.all([start(), start()]);
    const name = await startTcpProxy(old.port);
    onTestFinished(() => name.close());
    const store = { postgres: { url: postgresUrl(name.port), migrate: true } };
    (
      await openStore(checkConfig({ store: { postgres: { url: next.url(), migrate: true } } }, 'test'), openLog().log)
    ).close();
    const limits = { default: { allMethods: ['1000/1h'] } };
    const gateway = await startInProcess(configOf(upstream.url, { store, storeDeadlineMs: 500, limits }));
    const ask = async () => ratesOf(await gateway.ask('GET', '/api/v1/chats?account_id=acc_1'));
    await eventually(async () => (await ask()).remaining === 997, 'the old primary counts');
    if (fault === 'is silent') old.freeze();
    else await sql(old, 'alter system set default_transaction_read_only = on', 'select pg_reload_conf()');
    name.target = next.port;
    // The new one counts from the beginning.
    await eventually(async () => (await ask()).remaining === 998, 'the new primary counts');
    await eventually(
      async () => JSON.parse((await gateway.ask('GET', '/healthz')).text).status === 'ok',
      'a good health check',
    );
    if (fault === 'is silent') old.thaw();
    await gateway.stop();
  });
});

it('a server that is away at the start, and empty: with migrate the gateway creates the schema when it is there', async () => {
  const server = await start();
  await server.kill();
  const store = { postgres: { url: server.url(), migrate: true } };
  const limits = { default: { allMethods: ['1000/1h'] } };
  const gateway = await startInProcess(configOf(upstream.url, { store, limits }));
  const ask = () => gateway.ask('GET', '/api/v1/chats?account_id=acc_1');
  expect((await ask()).status).toBe(200);
  await server.restart();
  await eventually(async () => ratesOf(await ask()).limit === 1000, 'a whole decision');
  await gateway.stop();
});

describe('TLS', () => {
  it('verify-full trusts the given authority only; without it the connection fails, and require checks nobody', async () => {
    const certificate = createCertificate('localhost');
    const other = createCertificate('localhost');
    const owner = serverUser();
    // PostgreSQL reads its key only if the file belongs to it.
    const key = `${certificate.keyFile}.postgres`;
    copyFileSync(certificate.keyFile, key);
    const files = [dirname(key), key, certificate.certFile];
    if (owner !== undefined) for (const file of files) chownSync(file, owner.uid, owner.gid);
    const server = await start(
      '-c',
      'ssl=on',
      '-c',
      `ssl_cert_file=${certificate.certFile}`,
      '-c',
      `ssl_key_file=${key}`,
    );
    const of = (query: string, rest: object = {}) => ({
      postgres: { url: `postgres://postgres@localhost:${server.port}/postgres${query}`, migrate: true, ...rest },
    });
    const doctor = async (store: object) => findingsTable(await examineStore(checkConfig({ store }, 'test')));
    const gateway = await startInProcess(
      keyedConfig(upstream.url, { store: of('?sslmode=verify-full', { ca: certificate.certFile }) }),
    );
    expect((await post(gateway, freshKey())).status).toBe(200);
    await gateway.stop();
    expect(await doctor(of('', { ca: certificate.certFile }))).not.toMatch(/^fault/m);
    expect(await doctor(of('?sslmode=verify-ca', { ca: certificate.certFile }))).not.toMatch(/^fault/m);
    expect(await doctor(of('?sslmode=require'))).not.toMatch(/^fault/m);
    expect(await doctor(of('', { ca: other.certFile }))).toMatch(/^fault +reachable +.*certificate/m);
    expect(await doctor(of('?sslmode=verify-full'))).toMatch(/^fault +reachable +.*self.signed/m);
    const plain = await start();
    expect(await doctor({ postgres: { url: `${plain.url()}?sslmode=require` } })).toMatch(
      /^fault +reachable +.*does not support SSL/m,
    );
    for (const each of [certificate, other]) each.remove();
  });
});
