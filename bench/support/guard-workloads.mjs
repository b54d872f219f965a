// What `npm run bench -- --topic guard` compares: the code that every request runs through, without a server, so that only
// headgate's own code is measured.

const ROUTE = 'POST /api/v1/emails';
const KEY_COUNT = 1_000;
const PLENTY = 1_000_000_000;
const WINDOWS = 4;
const AT_ONCE = 16;
/** As many as in the store of the topic idempotency. */
const OUTCOMES = 5_000;
const ADJUSTED = 10_000;
const accounts = Array.from({ length: KEY_COUNT }, (_, i) => `account_${i}`);
const body = JSON.stringify({ to: 'a@example.com', subject: 'Your receipt', html: '<p>Thank you.</p>'.repeat(20) });

async function makeLimiter(load, max, store) {
  const { createLimiter } = await load('index');
  const { createMemoryStore } = await load('memory');
  const windows = (short, long) => [`${max}/${short}`, `${max}/${long}`];
  return createLimiter({
    store: store ?? createMemoryStore(),
    limits: { allMethods: windows('2d', '3d'), routes: { [ROUTE]: windows('1d', '7d') } },
  });
}

/** @returns a function that returns the accounts one after the other */
function accountsInTurn() {
  let at = 0;
  return () => accounts[at++ % KEY_COUNT];
}

/** Limits of a process that shares them with others, and its store. */
async function makeSharedLimits(load, adjusted) {
  const { createSharedLimits } = await load('shared-limits');
  const { createMemoryAdjustments } = await load('memory');
  const store = createMemoryAdjustments();
  const head = { version: 1, nonce: 'bench' };
  const author = { at: Date.now(), by: 'bench' };
  const windows = [{ max: 40, durationMs: 60_000 }];
  const adjustments = adjusted.map((account) => ({ target: { account }, windows, version: 1, ...author }));
  await store.restore(undefined, {
    ...{ head, adjustments },
    recent: [{ ...head, ...author, source: 'change', limits: [] }],
  });
  const base = { allMethods: [`${PLENTY}/2d`, `${PLENTY}/3d`], routes: { [ROUTE]: [`${PLENTY}/1d`, `${PLENTY}/7d`] } };
  return async () => {
    const limits = createSharedLimits({ base, adjustments: store, refreshMs: 60_000 });
    await limits.ready();
    return limits;
  };
}

async function idempotencyFactory(load) {
  const { createIdempotency } = await load('index');
  const { createMemoryClaimStore } = await load('memory');
  return () => createIdempotency({ store: createMemoryClaimStore() });
}

/** A fake ioredis client. It replies at once as `consume.lua` would: four windows per record, which begin now. */
function fakeRedisClient() {
  const now = Date.now();
  const windows = Array.from({ length: AT_ONCE * WINDOWS }, () => [now, 0]).flat();
  const longest = Buffer.from(Float64Array.of(now, ...windows).buffer);
  const sizeOf = (records) => (1 + 2 * WINDOWS * records) * Float64Array.BYTES_PER_ELEMENT;
  return { status: 'ready', evalshaBuffer: async (_, records) => longest.subarray(0, sizeOf(records)) };
}

/** By name: `(load) => call`. `load` imports a module of the build that is measured. */
/** A base revision may still call it `plan()`. */
const windowSetOf = (limits, subject) => (limits.windowSet ? limits.windowSet(subject) : limits.plan(subject));

export const GUARDED = {
  async 'consumeSync, accepted'(load) {
    const [limiter, next] = [await makeLimiter(load, PLENTY), accountsInTurn()];
    return () => limiter.consumeSync({ account: next(), route: ROUTE });
  },

  async 'consumeSync, rejected'(load) {
    const [limiter, next] = [await makeLimiter(load, 1), accountsInTurn()];
    return () => limiter.consumeSync({ account: next(), route: ROUTE });
  },

  async 'await consume, accepted'(load) {
    const [limiter, next] = [await makeLimiter(load, PLENTY), accountsInTurn()];
    return () => limiter.consume({ account: next(), route: ROUTE });
  },

  /** Fails if the base revision expects another reply format: pass a later --base then. */
  async 'Redis store without a server, 16 at once'(load) {
    const { createRedisStore } = await load('redis');
    const [limiter, next] = [await makeLimiter(load, PLENTY, createRedisStore(fakeRedisClient())), accountsInTurn()];
    return async () => {
      const checks = Array.from({ length: AT_ONCE }, () => limiter.consume({ account: next(), route: ROUTE }));
      const decisions = await Promise.all(checks);
      if (decisions.some(({ degraded }) => degraded)) throw new Error('the store did not understand the fake client');
      return decisions;
    };
  },

  /** The other accounts keep their plans, so it takes no longer the more of them are adjusted. */
  async 'adjust, one of 10,000 accounts'(load) {
    const limiter = await makeLimiter(load, PLENTY);
    const adjusted = Array.from({ length: ADJUSTED }, (_, i) => `account_${i}`);
    for (const account of adjusted) {
      limiter.adjust({ account }, ['40/1m']);
      windowSetOf(limiter, { account, route: ROUTE });
    }
    let max = 0;
    return () => {
      limiter.adjust({ account: adjusted[17] }, [`${++max}/1m`]);
      return windowSetOf(limiter, { account: adjusted[17], route: ROUTE });
    };
  },

  /** To compare with "consumeSync, accepted": shared limits cost a decision nothing. */
  async 'consumeSync, accepted, shared limits'(load) {
    const { createLimiter } = await load('index');
    const { createMemoryStore } = await load('memory');
    const create = await makeSharedLimits(load, ['another account']);
    const [limiter, next] = [createLimiter({ store: createMemoryStore(), limits: await create() }), accountsInTurn()];
    return () => limiter.consumeSync({ account: next(), route: ROUTE });
  },

  /** Two processes in turn: each call applies a change of its own, and the one that the other has made. */
  async 'shared limits, a change among 10,000 adjusted accounts'(load) {
    const create = await makeSharedLimits(
      load,
      Array.from({ length: ADJUSTED }, (_, i) => `account_${i}`),
    );
    const processes = [await create(), await create()];
    let calls = 0;
    return async () => {
      const limits = processes[++calls % 2];
      await limits.put({ account: 'account_17' }, [`${calls}/1m`], { by: 'bench', confirm: true });
      return windowSetOf(limits, { account: 'account_17', route: ROUTE });
    };
  },

  async 'idempotency, first call'(load) {
    const create = await idempotencyFactory(load);
    let idempotency = create();
    let calls = 0;
    return () => {
      // A store that grew for ever would measure its own growth.
      if (++calls % OUTCOMES === 0) idempotency = create();
      return idempotency.run(`key-${calls}`, body, async () => 'sent');
    };
  },

  async 'idempotency, replay'(load) {
    const idempotency = (await idempotencyFactory(load))();
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
    const [limiter, next] = [await makeLimiter(load, PLENTY), accountsInTurn()];
    const gate = createGate({ limiter, account: (request) => request.headers.get('x-account'), route: () => ROUTE });
    const handler = withHeadgate(gate, () => new Response('ok'));
    return () => handler(new Request('http://localhost/', { headers: { 'x-account': next() } }));
  },
};
