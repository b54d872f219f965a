/** The events of virtual time, in a binary heap. Events of the same time run in a fixed order that has no meaning. */
export function createAgenda() {
  const times = [];
  const actions = [];

  function place(index, time, action) {
    times[index] = time;
    actions[index] = action;
  }

  return {
    /** Time of the next event. */
    get next() {
      return times.length === 0 ? Number.POSITIVE_INFINITY : times[0];
    },
    /** @param action called with `time` */
    add(time, action) {
      let at = times.length;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (times[parent] <= time) break;
        place(at, times[parent], actions[parent]);
        at = parent;
      }
      place(at, time, action);
    },
    run() {
      const [now, action] = [times[0], actions[0]];
      const [time, last] = [times.pop(), actions.pop()];
      const size = times.length;
      let at = 0;
      if (size > 0) {
        for (;;) {
          let child = 2 * at + 1;
          if (child >= size) break;
          if (child + 1 < size && times[child + 1] < times[child]) child++;
          if (times[child] >= time) break;
          place(at, times[child], actions[child]);
          at = child;
        }
        place(at, time, last);
      }
      action(now);
    },
  };
}
