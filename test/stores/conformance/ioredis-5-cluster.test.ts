import fc from 'fast-check';
import { describe, inject, it } from 'vitest';
import { limitStoreSuite } from '../../../src/testing/limit-store-suite.ts';
import { CLUSTER_CLIENTS_5 } from '../../support/redis-clients.ts';
import { redisSubject } from '../../support/redis-conformance.ts';

limitStoreSuite(
  { describe, it },
  fc,
  redisSubject(CLUSTER_CLIENTS_5, 'ioredis 5 Cluster', inject('redis').clusterPorts, 60),
);
