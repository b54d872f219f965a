// A process of the topics about the service: the built service, a bare Fastify route with the same answer, the mock provider
// or nodemailer called directly, a queue in Redis, or the mail servers that all of them send to. It reports its CPU time and
// its memory.
process.env.NODE_ENV = 'production';
const { existsSync, readFileSync, writeFileSync } = await import('node:fs');
const { cpuMicros } = await import('headgate-bench/cpu');
const { answerWith } = await import('headgate-bench/member');

const { kind, main, environment, port, accounts, sinks, redisPort, hasLogin } = JSON.parse(process.argv[2]);
const STARTS = {
  service: startService,
  bare: startBare,
  mock: startMock,
  nodemailer: startNodemailer,
  queue: startQueue,
  sinks: startSinks,
};
const sendDirectly = await STARTS[kind]();
answerWith(async (request) => {
  if (request === 'ports') return sendDirectly();
  if (request === 'forget the peak') forgetPeak();
  const direct = typeof request === 'object' ? await sendDirectly(request) : {};
  return { cpuMicros: cpuMicros(), rss: process.memoryUsage().rss, peakRss: peakRss(), ...direct };
});

/** The system counts the most memory from here on. */
function forgetPeak() {
  global.gc?.();
  if (existsSync('/proc/self/clear_refs')) writeFileSync('/proc/self/clear_refs', '5');
}

function peakRss() {
  if (!existsSync('/proc/self/status')) return process.resourceUsage().maxRSS * 1_024;
  const [, kib] = /^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kib) * 1_024;
}

async function startService() {
  Object.assign(process.env, environment, { PORT: String(port) });
  process.argv.splice(2, 1, 'start');
  await import(main);
}

async function startBare() {
  const { default: fastify } = await import('fastify');
  const app = fastify();
  let sent = 0;
  const answer = () => ({
    object: 'EmailSent',
    tracking_id: 'eml_01kaj6r5t0e7r8s9t0v1w2x3y4',
    provider_id: `mock-${++sent}`,
    provider_immutable_id: null,
  });
  app.addContentTypeParser('multipart/form-data', (_, body, done) => body.resume().once('end', () => done(null)));
  app.post('/api/v1/emails', async (_, reply) => reply.code(201).send(answer()));
  const pages = { page: `<!DOCTYPE html><title>A page</title>${'<p>Some text of the page</p>'.repeat(150)}` };
  app.get('/:name', async ({ params }, reply) => reply.type('text/html; charset=utf-8').send(pages[params.name]));
  await app.listen({ port, host: '127.0.0.1' });
  return (more) => Object.assign(pages, more) && {};
}

/** What the service's provider does for a send, without the service. */
async function startMock() {
  const { Readable } = await import('node:stream');
  const { loadServiceParts } = await import('./service-parts.mjs');
  const { MockMailbox, MockMailProvider, createLog, openStore, readConfig } = await loadServiceParts();
  const { db } = await openStore(readConfig(environment), createLog('silent'));
  const provider = new MockMailProvider(new MockMailbox(db, Date.now));
  const raw = Buffer.alloc(700, 'headers and body\r\n');
  let count = 0;
  const send = async () => {
    const id = ++count;
    const account = { id: accounts[id % accounts.length], address: 'a@example.com', credentials: { drafts: true } };
    const mail = {
      messageId: `<${id}@example.com>`,
      recipients: ['ann@example.com'],
      open: () => Readable.from([raw]),
      hold: () => async () => {},
    };
    const { signal } = new AbortController();
    await provider.sendDraft(await provider.draft(mail, account, signal), account, signal);
  };
  return (asked) => sendInTurns(asked, send);
}

/** What a program does that sends the same emails without the service. */
async function startNodemailer() {
  const { createMailTransport, UNBOUND } = await import('./service-queue.mjs');
  // Haraka, which wants no login, has as many connections as the other peers.
  const transport = createMailTransport(sinks.smtpPort, hasLogin, hasLogin ? {} : UNBOUND);
  return ({ email, ...asked }) => sendInTurns(asked, () => transport.sendMail(email));
}

async function startQueue() {
  const { startQueue: start } = await import('./service-queue.mjs');
  await start({ port, redisPort, sinks });
}

async function startSinks() {
  const { startMailSinks } = await import('./mail-sinks.mjs');
  const { ports, until } = await startMailSinks();
  return (wanted) => (wanted === undefined ? ports : until(wanted));
}

async function sendInTurns({ sends, connections }, send) {
  const before = cpuMicros();
  const began = performance.now();
  const milliseconds = [];
  const inTurn = async () => {
    for (let i = 0; i < sends / connections; i++) {
      const start = performance.now();
      await send();
      milliseconds.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: connections }, inTurn));
  return { seconds: (performance.now() - began) / 1_000, cpuMicros: cpuMicros() - before, milliseconds };
}
