import fc from 'fast-check';
import { describe, inject, it } from 'vitest';
import { limitStoreSuite } from '../../../src/testing/limit-store-suite.ts';
import { CLIENTS } from '../../support/redis-clients.ts';
import { redisSubject } from '../../support/redis-conformance.ts';

const { valkeyPort } = inject('redis');
// The global setup prints this as well.
if (valkeyPort === undefined) it.skip('Valkey: not on this machine (VALKEY_SERVER_BIN)', () => {});
else limitStoreSuite({ describe, it }, fc, redisSubject(CLIENTS, 'ioredis by default', valkeyPort, 200));
