import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Rooms } from '../../rooms.ts';

export const keyRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async () => {};
