/** Accounts that share so many last characters are in the sample together. It bounds the time for a long account. */
const MAX_LENGTH = 256;

/** Whether an account is in a sample. It depends on nothing else, so every process has the same accounts in it. */
export function isInSample(account: string, sample: number): boolean {
  return sample >= 1 || shareOf(account) < sample;
}

/** A number from 0 up to 1, evenly spread over accounts: FNV-1a, and the last steps of MurmurHash3. */
function shareOf(account: string): number {
  let hash = 0x811c9dc5;
  for (let i = Math.max(0, account.length - MAX_LENGTH); i < account.length; i++)
    hash = Math.imul(hash ^ account.charCodeAt(i), 0x01000193);
  // Without these steps, accounts that differ in their last characters only would have similar numbers.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
