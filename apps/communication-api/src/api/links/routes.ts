import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Rooms } from '../../rooms.ts';

export const linkRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async () => {};
