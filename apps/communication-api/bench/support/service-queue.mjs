import fastify from 'fastify';
import { requirePeer } from 'headgate-bench/peers';
import { createTransport } from 'nodemailer';

/** So many emails are sent at the same time. The queue's own default is one. */
const AT_ONCE = 10;

/** So many connections as there are emails at the same time. */
export const UNBOUND = { maxConnections: 100, maxMessages: Number.POSITIVE_INFINITY };

/**
 * Nodemailer with a pool of connections.
 * @param hasLogin whether the mail server wants one
 * @param bounds of the pool; default: nodemailer's own, 5 connections, each for 100 emails
 */
export const createMailTransport = (port, hasLogin = true, bounds = {}) =>
  createTransport({
    host: '127.0.0.1',
    port,
    ignoreTLS: true,
    ...(hasLogin && { auth: { user: 'ann', pass: 'secret' } }),
    pool: true,
    ...bounds,
  });

/** What many programs do: a route puts emails into a queue in Redis, and nodemailer sends them. */
export async function startQueue({ port, redisPort, sinks }) {
  const { Queue, Worker } = requirePeer('bullmq');
  const connection = { host: '127.0.0.1', port: redisPort, maxRetriesPerRequest: null };
  const queue = new Queue('emails', { connection });
  const transport = createMailTransport(sinks.smtpPort, true, UNBOUND);
  const options = { connection, concurrency: AT_ONCE };
  await new Worker('emails', ({ data }) => transport.sendMail(data), options).waitUntilReady();
  const app = fastify();
  app.post('/emails', async ({ headers, body }, reply) => {
    await queue.add('email', body, { jobId: headers['idempotency-key'], attempts: 3, removeOnComplete: true });
    return reply.code(202).send({ object: 'EmailQueued' });
  });
  await app.listen({ port, host: '127.0.0.1' });
}
