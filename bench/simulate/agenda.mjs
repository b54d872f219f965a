/** What happens when, in virtual time: a binary heap. Of two things at one time the order is fixed, but means nothing. */
export function createAgenda() {
  const times = [];
  const acts = [];

  function place(index, time, act) {
    times[index] = time;
    acts[index] = act;
  }

  return {
    /** When the next thing happens. */
    get next() {
      return times.length === 0 ? Number.POSITIVE_INFINITY : times[0];
    },
    /** @param act called with `time` */
    add(time, act) {
      let at = times.length;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (times[parent] <= time) break;
        place(at, times[parent], acts[parent]);
        at = parent;
      }
      place(at, time, act);
    },
    run() {
      const [now, act] = [times[0], acts[0]];
      const [time, last] = [times.pop(), acts.pop()];
      const size = times.length;
      let at = 0;
      if (size > 0) {
        for (;;) {
          let child = 2 * at + 1;
          if (child >= size) break;
          if (child + 1 < size && times[child + 1] < times[child]) child++;
          if (times[child] >= time) break;
          place(at, times[child], acts[child]);
          at = child;
        }
        place(at, time, last);
      }
      act(now);
    },
  };
}
