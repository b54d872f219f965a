// A process of the topic bytes: memory per key of one candidate, beyond the key strings, from the memory of the whole
// process after a full garbage collection. Needs --expose-gc. Prints JSON.
import { CANDIDATES } from './memory-candidates.mjs';

const [, , candidate, count] = process.argv;
const keyCount = Number(count);
const DAY_MS = 86_400_000;

const accounts = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
// V8 stores the hash of a string in the string's header. It is computed here, so that the strings have the same size
// before and after.
const hashed = new Set(accounts);
hashed.clear();

const used = () => {
  for (let i = 0; i < 4; i++) gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const { make, waits } = CANDIDATES[candidate];
const settings = { accounts, max: 1_000_000_000, windowsMs: [1, 2, 3, 7].map((days) => days * DAY_MS) };
// Modules are loaded and code is compiled before the first measurement.
const warmUp = make({ ...settings, accounts: ['warm-up'] });
await warmUp.ask('warm-up');

const before = used();
const { ask, size } = make(settings);
for (const account of accounts) {
  const answer = ask(account);
  if (waits) await answer;
}
if (size() !== keyCount) throw new Error(`${candidate} has ${size()} keys, expected ${keyCount}`);
const bytesPerKey = (used() - before) / keyCount;
// These references keep the store and the strings alive until after the measurement.
console.log(JSON.stringify({ bytesPerKey, keys: size(), accounts: accounts.length }));
process.exit();
