/**
 * A server with one thread, like Redis's event loop. A turn takes the calls that have arrived, serves them one after
 * the other, and sends their replies together at its end.
 * @param serviceOf `(records)`: microseconds that a call with so many records takes
 * @param decide `(call, time)`: called when the call is served
 * @param answer `(calls, time)`: called with the calls of one gateway in this turn, when their replies are sent
 */
export function createShard({ agenda, serviceOf, decide, answer }) {
  let waiting = [];
  let isBusy = false;
  const done = { calls: 0, records: 0, busyMicros: 0, waitMicros: 0 };

  function turn(now) {
    const byGateway = new Map();
    let time = now;
    for (const { call, cameAt } of waiting) {
      const calls = byGateway.get(call.gateway);
      if (calls === undefined) byGateway.set(call.gateway, [call]);
      else calls.push(call);
      done.waitMicros += time - cameAt;
      decide(call, time);
      time += serviceOf(call.checks.length);
      done.records += call.checks.length;
    }
    done.calls += waiting.length;
    done.busyMicros += time - now;
    waiting = [];
    agenda.add(time, (end) => {
      for (const calls of byGateway.values()) answer(calls, end);
      if (waiting.length > 0) turn(end);
      else isBusy = false;
    });
  }

  return {
    done,
    receive(call, now) {
      waiting.push({ call, cameAt: now });
      if (isBusy) return;
      isBusy = true;
      turn(now);
    },
  };
}
