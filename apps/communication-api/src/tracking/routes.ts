import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Tracking } from './tracking.ts';
import { visitorOf } from './visitor.ts';

/** A transparent GIF of one pixel. */
const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
const NOT_FOUND = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>This link does not work</title>
<style>body{max-width:32rem;margin:20vh auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}h1{font-size:1.5rem}</style>
<h1>This link does not work</h1>
<p>It is incomplete, or it is no longer valid. Open the email again and follow the link from there.</p>
</html>
`;

/** The links and pixels of tracked emails. */
export const trackingRoutes: FastifyPluginAsync<{ rooms: { readonly tracking: Tracking } }> = async (
  app,
  { rooms: { tracking } },
) => {
  // A token may be longer than a parameter of a path; the wildcard is not bounded.
  const tokenOf = (request: FastifyRequest): string => (request.params as { '*': string })['*'];
  const record = ({ method, headers }: FastifyRequest, sendId: string, linkNo: number | null): void =>
    tracking.record({ sendId, linkNo, visitor: visitorOf(method, headers) });

  app.addHook('onRequest', async (_, reply) => void reply.header('cache-control', 'no-store'));

  app.setNotFoundHandler((_, reply) => notFound(reply));

  app.route({
    method: ['GET', 'HEAD'],
    url: '/l/*',
    schema: { hide: true },
    handler: (request, reply) => {
      const link = tracking.tokens.openLink(tokenOf(request));
      if (link === undefined) return notFound(reply);
      record(request, link.sendId, link.no);
      return reply.code(302).header('location', link.target).send();
    },
  });

  app.route({
    method: ['GET', 'HEAD'],
    url: '/o/*',
    schema: { hide: true },
    handler: (request, reply) => {
      const sendId = tracking.tokens.openPixel(tokenOf(request));
      if (sendId === undefined) return notFound(reply);
      record(request, sendId, null);
      return reply.type('image/gif').send(PIXEL);
    },
  });
};

const notFound = (reply: FastifyReply): FastifyReply =>
  reply
    .code(404)
    .type('text/html; charset=utf-8')
    .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
    .header('x-content-type-options', 'nosniff')
    .send(NOT_FOUND);
