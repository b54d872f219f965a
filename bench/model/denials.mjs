/**
 * A gateway's cache of certain rejections, as in src/stores/shared/denials.ts: until the window ends, for at most
 * `maxMicros`. It starts in a random state: one that it would have if requests had come to this gateway forever.
 * @param gapOf mean microseconds between an account's arrivals at one gateway
 */
export function createDenials({ maxMicros, allowance, gapOf, random }) {
  const untilOf = new Map();

  function untilAtStart(account) {
    const full = allowance.fullAtStart(account);
    if (full === undefined) return undefined;
    const gap = gapOf(account);
    let until = 0;
    for (let asked = full.since + random.exponential(gap); asked < 0; asked = until + random.exponential(gap)) {
      until = Math.min(asked + maxMicros, full.until);
    }
    return until;
  }

  return {
    isDenied(account, now) {
      if (maxMicros === 0) return false;
      let until = untilOf.get(account);
      if (until === undefined) {
        until = untilAtStart(account);
        if (until === undefined) return false;
        untilOf.set(account, until);
      }
      return now < until;
    },
    remember(account, sentAt, windowEnd) {
      untilOf.set(account, Math.min(sentAt + maxMicros, windowEnd));
    },
  };
}
