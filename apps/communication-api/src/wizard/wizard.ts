import type { FastifyPluginAsync } from 'fastify';
import type { Rooms } from '../rooms.ts';

/** The hosted wizard, under `/auth`. */
export const wizard: FastifyPluginAsync<{ rooms: Rooms }> = async () => {};
