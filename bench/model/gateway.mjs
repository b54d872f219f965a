import { callsOf } from './calls.mjs';

/**
 * A process with one thread, like Node's event loop. A turn takes what has arrived (requests to decide, replies of the
 * store), spends the CPU time of all of it, and then sends the turn's calls one after the other.
 * @param cpu microseconds: `request` before the decision, `answer` after the decision, `call` per call
 * @param send `(call, time)`: called with `{ gateway, checks, sentAt, decisions }`; the reply comes back through
 *   `receive`
 * @param decided called with `{ request, time, isLocal, isAccepted }`
 */
export function createGateway({ agenda, cpu, denials, isCluster, send, decided }) {
  let requests = [];
  let replies = [];
  let isBusy = false;

  const gateway = {
    ask(request, now) {
      requests.push(request);
      wake(now);
    },
    /** @param calls the calls that have a reply: each check has a `rejectedUntil` per request, undefined if accepted */
    receive(calls, now) {
      replies.push(...calls);
      wake(now);
    },
  };

  function wake(now) {
    if (isBusy) return;
    isBusy = true;
    turn(now);
  }

  function turn(now) {
    const [newRequests, newReplies] = [requests, replies];
    requests = [];
    replies = [];
    const undecided = [];
    const denied = [];
    for (const request of newRequests) (denials.isDenied(request.account, now) ? denied : undecided).push(request);
    const calls = undecided.length === 0 ? [] : callsOf(undecided, isCluster);
    let time = now + newRequests.length * cpu.request + denied.length * cpu.answer;
    for (const { decisions } of newReplies) time += decisions * cpu.answer;
    agenda.add(time, (decidedAt) => {
      for (const request of denied) decided({ request, time: decidedAt, isLocal: true, isAccepted: false });
      for (const reply of newReplies) settle(reply, decidedAt);
    });
    for (const checks of calls) {
      time += cpu.call;
      const call = { gateway, checks, sentAt: time, decisions: countOf(checks) };
      agenda.add(time, (sentAt) => send(call, sentAt));
    }
    agenda.add(time, end);
  }

  function end(now) {
    if (requests.length + replies.length > 0) turn(now);
    else isBusy = false;
  }

  function settle({ checks, sentAt }, now) {
    for (const { account, requests, rejectedUntil } of checks) {
      for (const [i, request] of requests.entries()) {
        const until = rejectedUntil[i];
        if (until !== undefined) denials.remember(account, sentAt, until);
        decided({ request, time: now, isLocal: false, isAccepted: until === undefined });
      }
    }
  }

  return gateway;
}

const countOf = (checks) => checks.reduce((sum, { requests }) => sum + requests.length, 0);
