// What `npm run bench:guard` compares: the ways that every request takes, without a server, so that nothing but headgate's own code is in them.

const ROUTE = 'POST /api/v1/emails';
const KEY_COUNT = 1_000;
const PLENTY = 1_000_000_000;
const WINDOWS = 4;
const AT_ONCE = 16;
/** As many as the store of the topic idempotency holds. */
const OUTCOMES = 5_000;
const accounts = Array.from({ length: KEY_COUNT }, (_, i) => `account_${i}`);
const body = JSON.stringify({ to: 'a@example.com', subject: 'Your receipt', html: '<p>Thank you.</p>'.repeat(20) });

async function limiterOf(load, max, store) {
  const { createLimiter } = await load('index');
  const { createMemoryStore } = await load('memory');
  const windows = (short, long) => [`${max}/${short}`, `${max}/${long}`];
  return createLimiter({
    store: store ?? createMemoryStore(),
    limits: { allMethods: windows('2d', '3d'), routes: { [ROUTE]: windows('1d', '7d') } },
  });
}

function inTurns() {
  let at = 0;
  return () => accounts[at++ % KEY_COUNT];
}

async function idempotencyOf(load) {
  const { createIdempotency } = await load('index');
  const { createMemoryClaimStore } = await load('memory');
  return () => createIdempotency({ store: createMemoryClaimStore() });
}

/** Looks like ioredis, and answers at once what `consume.lua` would: of each record four windows that begin now. */
function answering() {
  const now = Date.now();
  const windows = Array.from({ length: AT_ONCE * WINDOWS }, () => [now, 0]).flat();
  const longest = Buffer.from(Float64Array.of(now, ...windows).buffer);
  const sizeOf = (records) => (1 + 2 * WINDOWS * records) * Float64Array.BYTES_PER_ELEMENT;
  return { status: 'ready', evalshaBuffer: async (_, records) => longest.subarray(0, sizeOf(records)) };
}

/** By name: `(load) => call`, where `load` gives a module of the build that is measured. */
export const GUARDED = {
  async 'consumeSync, accepted'(load) {
    const [limiter, next] = [await limiterOf(load, PLENTY), inTurns()];
    return () => limiter.consumeSync({ account: next(), route: ROUTE });
  },

  async 'consumeSync, refused'(load) {
    const [limiter, next] = [await limiterOf(load, 1), inTurns()];
    return () => limiter.consumeSync({ account: next(), route: ROUTE });
  },

  async 'await consume, accepted'(load) {
    const [limiter, next] = [await limiterOf(load, PLENTY), inTurns()];
    return () => limiter.consume({ account: next(), route: ROUTE });
  },

  /** Fails where a base understands another reply: then name a later one. */
  async 'Redis store without a server, 16 at once'(load) {
    const { createRedisStore } = await load('redis');
    const [limiter, next] = [await limiterOf(load, PLENTY, createRedisStore(answering())), inTurns()];
    return async () => {
      const asked = Array.from({ length: AT_ONCE }, () => limiter.consume({ account: next(), route: ROUTE }));
      const decisions = await Promise.all(asked);
      if (decisions.some(({ degraded }) => degraded)) throw new Error('the store did not understand its client');
      return decisions;
    };
  },

  async 'idempotency, first call'(load) {
    const create = await idempotencyOf(load);
    let idempotency = create();
    let made = 0;
    return () => {
      // One that grew for ever would measure its growing.
      if (++made % OUTCOMES === 0) idempotency = create();
      return idempotency.run(`key-${made}`, body, async () => 'sent');
    };
  },

  async 'idempotency, replay'(load) {
    const idempotency = (await idempotencyOf(load))();
    return () => idempotency.run('key', body, async () => 'sent');
  },

  async 'fingerprint of a JSON body'(load) {
    const { createFingerprinter } = await load('http');
    const bytes = Buffer.from(body);
    return () => {
      const printer = createFingerprinter({ method: 'POST', path: '/api/v1/emails', contentType: 'application/json' });
      printer.write(bytes);
      printer.end();
      return printer.fingerprint('acc_1');
    };
  },

  async 'a request through the gate, fetch'(load) {
    const { createGate } = await load('index');
    const { withHeadgate } = await load('fetch');
    const [limiter, next] = [await limiterOf(load, PLENTY), inTurns()];
    const gate = createGate({ limiter, account: (request) => request.headers['x-account'], route: () => ROUTE });
    const handler = withHeadgate(gate, () => new Response('ok'));
    return () => handler(new Request('http://localhost/', { headers: { 'x-account': next() } }));
  },
};
