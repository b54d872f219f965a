import fc from 'fast-check';
import { describe, inject, it } from 'vitest';
import { adjustmentStoreSuite } from '../support/adjustment-suite/suite.ts';
import { CLIENTS, CLUSTER_CLIENTS } from '../support/redis-clients.ts';
import { redisAdjustmentsSubject } from '../support/redis-conformance.ts';

const { port, clusterPorts } = inject('redis');

for (const name of ['ioredis by default', 'node-redis by default'])
  adjustmentStoreSuite({ describe, it }, fc, redisAdjustmentsSubject(CLIENTS, name, port));
for (const name of ['ioredis Cluster by default', 'node-redis cluster by default'])
  adjustmentStoreSuite({ describe, it }, fc, redisAdjustmentsSubject(CLUSTER_CLIENTS, name, clusterPorts));
