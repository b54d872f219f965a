import type { Cluster, Redis } from 'ioredis';
import type { BoardStorage } from './fleet-board.ts';

/** All keys share a hash slot, so that one command reads the details of many processes in a cluster. */
const TAG = 'headgate:fleet:{fleet}';
const CANDIDATE = `${TAG}:candidate`;
const DETAILS = `${TAG}:about:`;

/** The storage of a fleet board in Redis. */
export function redisBoard(client: Redis | Cluster): BoardStorage {
  return {
    writeDetails: (name, details, keptMs) => client.set(DETAILS + name, details, 'PX', keptMs),
    detailsOf: (names) => client.mget(names.map((name) => DETAILS + name)),
    candidateId: async () => (await client.hget(CANDIDATE, 'id')) ?? '',
    async candidate() {
      const [id, text] = await client.hmget(CANDIDATE, 'id', 'text');
      return { id: id ?? '', text: text ?? '' };
    },
    writeCandidate: ({ id, text }) => (id === '' ? client.del(CANDIDATE) : client.hset(CANDIDATE, { id, text })),
  };
}
