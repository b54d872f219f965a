import fc from 'fast-check';
import { describe, inject, it } from 'vitest';
import { limitStoreSuite } from '../../../src/testing/limit-store-suite.ts';
import { CLUSTER_CLIENTS } from '../../support/redis-clients.ts';
import { redisSubject } from '../../support/redis-conformance.ts';

limitStoreSuite(
  { describe, it },
  fc,
  redisSubject(CLUSTER_CLIENTS, 'ioredis Cluster by default', inject('redis').clusterPorts, 300),
);
