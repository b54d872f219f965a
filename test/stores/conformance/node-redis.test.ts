import fc from 'fast-check';
import { describe, inject, it } from 'vitest';
import { limitStoreSuite } from '../../../src/testing/limit-store-suite.ts';
import { CLIENTS } from '../../support/redis-clients.ts';
import { redisSubject } from '../../support/redis-conformance.ts';

limitStoreSuite({ describe, it }, fc, redisSubject(CLIENTS, 'node-redis by default', inject('redis').port, 400));
