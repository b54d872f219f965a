// A floor of the topic service-start: a process that does only one part of what the service does when it starts.
import process from 'node:process';

const [kind, place] = process.argv.slice(2);
const STARTS = { bare: startBare, pglite: startPglite };
await STARTS[kind]();
console.log('started');
process.on('SIGTERM', () => process.exit());

async function startBare() {
  const { default: fastify } = await import('fastify');
  const app = fastify();
  app.get('/healthz', async () => ({ status: 'ok' }));
  await app.listen({ port: Number(place), host: '127.0.0.1' });
}

async function startPglite() {
  const { PGlite } = await import('@electric-sql/pglite');
  const pglite = await PGlite.create(place);
  await pglite.query('select 1');
  // An idle process would end.
  setInterval(() => {}, 60_000);
  process.once('SIGTERM', () => pglite.close());
}
