import type { FastifyPluginAsync } from 'fastify';
import { customHost } from '../../domain/custom-domain.ts';
import type { Rooms } from '../../rooms.ts';
import { ownHosts } from './custom-domain.ts';

/**
 * Says whether a proxy in front, such as Caddy, may get a certificate for a host: 200 or 404. The address is not part
 * of the API, and the proxy does not forward it from outside.
 */
export const tlsAsk: FastifyPluginAsync<{ rooms: Rooms }> = async (app, { rooms: { domains, config } }) => {
  const hosts = ownHosts(config);
  app.get('/internal/tls-ask', { schema: { hide: true } }, async (request, reply) => {
    const { domain } = request.query as { readonly domain?: unknown };
    const name = typeof domain === 'string' ? domain.toLowerCase() : '';
    const custom = customHost(name);
    const isKnown = hosts.includes(name) || (custom !== undefined && (await domains.isServed(custom)));
    return reply.code(isKnown ? 200 : 404).send();
  });
};
