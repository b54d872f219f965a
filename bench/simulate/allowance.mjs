/**
 * The counters of all accounts: one rolling fixed window each, which starts with the first request after the last one's end. A simulated slice is
 * shorter than a window, so an account that is met for the first time is put into the state that it would be in by chance at time 0, after its
 * requests have gone on forever.
 * @param window `{ max, micros }`
 * @param gapOf microseconds between an account's arrivals, in the mean
 * @param burst draws how many requests come with an arrival
 */
export function createAllowance({ window: { max, micros }, gapOf, burst, random }) {
  const states = new Map();

  /** By renewal theory: active with its share of a cycle of window and gap, its age then uniform; arrivals are played until now. */
  function stateAtStart(gap) {
    if (random.uniform() >= micros / (micros + gap)) return { end: 0, count: 0, fullAt: undefined };
    const age = random.uniform() * micros;
    const state = { end: micros - age, count: 0, fullAt: undefined };
    for (let time = -age; time <= 0 && state.count < max; time += random.exponential(gap)) {
      state.count = Math.min(max, state.count + burst());
      if (state.count === max) state.fullAt = time;
    }
    return state;
  }

  function stateOf(account) {
    let state = states.get(account);
    if (state === undefined) {
      state = stateAtStart(gapOf(account));
      states.set(account, state);
    }
    return state;
  }

  return {
    /** @returns undefined where the request is accepted and charged, else when the window ends */
    take(account, now) {
      const state = stateOf(account);
      if (now >= state.end) {
        state.end = now + micros;
        state.count = 0;
      }
      if (state.count >= max) return state.end;
      state.count++;
      return undefined;
    },
    /** Since when an account was full as the simulation began, and until when; undefined where it was not. */
    fullAtStart(account) {
      const { fullAt, end } = stateOf(account);
      return fullAt === undefined ? undefined : { since: fullAt, until: end };
    },
  };
}
