/**
 * The counters of all accounts. Each account has one rolling fixed window, which starts with the first request after
 * the end of the window before. A simulated slice is shorter than a window. So an account starts in a random state: one
 * that it would have at time 0 if its requests had gone on forever.
 * @param window `{ max, micros }`
 * @param gapOf mean microseconds between an account's arrivals
 * @param burst draws how many requests come with one arrival
 */
export function createAllowance({ window: { max, micros }, gapOf, burst, random }) {
  const states = new Map();

  /**
   * By renewal theory: a window is open with the probability of its share in a cycle of window and gap, and its age is
   * uniform. The arrivals since its start are played.
   */
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
    /** @returns undefined if the request is accepted and charged, else the end of the window */
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
    /** Since when and until when an account's window was full at time 0; undefined if it was not full. */
    fullAtStart(account) {
      const { fullAt, end } = stateOf(account);
      return fullAt === undefined ? undefined : { since: fullAt, until: end };
    },
  };
}
