// Bytes a key, of the whole process after a full collection, beyond the key strings themselves. Run with --expose-gc. Prints JSON.
import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';

const keyCount = Number(process.argv[2]);
const ROUTE = 'POST /api/v1/emails';
const accounts = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
// A hash is computed and kept in the string's own header: done here, so that strings weigh the same before and after.
const hashed = new Set(accounts);
hashed.clear();

const used = () => {
  for (let i = 0; i < 4; i++) gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const before = used();
const limiter = createLimiter({
  store: createMemoryStore({ maxKeys: keyCount }),
  limits: { allMethods: ['60/1m', '5000/1d'], routes: { [ROUTE]: ['10/1m', '200/1d'] } },
});
for (const account of accounts) limiter.consumeSync({ account, route: ROUTE });
const bytesPerKey = (used() - before) / keyCount;
console.log(
  JSON.stringify({
    keyCount,
    bytesPerKey,
    kept: accounts.length,
    left: limiter.consumeSync({ account: accounts[0], route: ROUTE }).shown.remaining,
  }),
);
