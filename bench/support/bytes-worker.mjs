// A process of the bytes topic: bytes a key of one candidate, of the whole process after a full collection, beyond the key strings. --expose-gc. Prints JSON.
import { CANDIDATES } from './memory-candidates.mjs';

const [, , candidate, count] = process.argv;
const keyCount = Number(count);
const DAY_MS = 86_400_000;

const accounts = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
// A hash is computed and kept in the string's own header: done here, so that strings weigh the same before and after.
const hashed = new Set(accounts);
hashed.clear();

const used = () => {
  for (let i = 0; i < 4; i++) gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const { make, waits } = CANDIDATES[candidate];
const settings = { accounts, max: 1_000_000_000, windowsMs: [1, 2, 3, 7].map((days) => days * DAY_MS) };
// Code is compiled, and modules are loaded, before.
const other = make({ ...settings, accounts: ['nobody'] });
await other.ask('nobody');

const before = used();
const { ask, size } = make(settings);
for (const account of accounts) {
  const answer = ask(account);
  if (waits) await answer;
}
if (size() !== keyCount) throw new Error(`${candidate} holds ${size()} of ${keyCount} keys`);
const bytesPerKey = (used() - before) / keyCount;
// All of it was alive until here.
console.log(JSON.stringify({ bytesPerKey, held: size(), accounts: accounts.length }));
process.exit();
