import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, inject } from 'vitest';

/** A client of the server of the run, connected while the tests of a file run. */
export function redisForFile(): Redis {
  return whileFileRuns(new Redis({ port: inject('redis').port, host: '127.0.0.1' }));
}

/** The same of the cluster of the run. */
export function clusterForFile(): Cluster {
  return whileFileRuns(new Cluster(inject('redis').clusterPorts.map((port) => ({ host: '127.0.0.1', port }))));
}

function whileFileRuns<Client extends Redis | Cluster>(client: Client): Client {
  beforeAll(() => client.ping());
  afterAll(() => client.disconnect());
  return client;
}
