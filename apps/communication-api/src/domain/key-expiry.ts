/** Longest time that a key may be valid. */
export const MAX_KEY_YEARS = 5;

/** Whether a key may expire at a time: in the future, and not too far away. */
export function isKeyExpiry(expiry: Date, nowMs: number): boolean {
  const latest = new Date(nowMs);
  latest.setUTCFullYear(latest.getUTCFullYear() + MAX_KEY_YEARS);
  return expiry.getTime() > nowMs && expiry <= latest;
}
