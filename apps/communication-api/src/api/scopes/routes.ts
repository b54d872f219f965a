import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Rooms } from '../../rooms.ts';

export const scopeRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async () => {};
