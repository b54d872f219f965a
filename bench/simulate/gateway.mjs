import { callsOf } from './calls.mjs';

/**
 * A process with one thread, as Node's event loop works: a turn takes whatever has come (requests to decide, answers of the store), takes its time
 * for all of that, and then sends the turn's calls one after the other.
 * @param cpu microseconds: `request` until it is asked for, `answer` once it is decided, `call` for each call
 * @param send takes `{ gateway, checks, sentAt }`, and when; its answer comes back through `hear`
 * @param decided takes `{ request, time, isLocal, isAccepted }`
 */
export function createGateway({ agenda, cpu, denials, isCluster, send, decided }) {
  let requests = [];
  let answers = [];
  let isBusy = false;

  const gateway = {
    ask(request, now) {
      requests.push(request);
      wake(now);
    },
    /** @param calls that are answered: their checks have `refusedUntil` for each of their requests */
    hear(calls, now) {
      answers.push(...calls);
      wake(now);
    },
  };

  function wake(now) {
    if (isBusy) return;
    isBusy = true;
    turn(now);
  }

  function turn(now) {
    const [asked, heard] = [requests, answers];
    requests = [];
    answers = [];
    const open = [];
    const certain = [];
    for (const request of asked) (denials.isCertain(request.account, now) ? certain : open).push(request);
    const calls = open.length === 0 ? [] : callsOf(open, isCluster);
    let time = now + asked.length * cpu.request + certain.length * cpu.answer;
    for (const { decisions } of heard) time += decisions * cpu.answer;
    agenda.add(time, (dealtAt) => {
      for (const request of certain) decided({ request, time: dealtAt, isLocal: true, isAccepted: false });
      for (const answer of heard) deal(answer, dealtAt);
    });
    for (const checks of calls) {
      time += cpu.call;
      const call = { gateway, checks, sentAt: time, decisions: countOf(checks) };
      agenda.add(time, (sentAt) => send(call, sentAt));
    }
    agenda.add(time, end);
  }

  function end(now) {
    if (requests.length + answers.length > 0) turn(now);
    else isBusy = false;
  }

  function deal({ checks, sentAt }, now) {
    for (const { account, requests, refusedUntil } of checks) {
      for (const [i, request] of requests.entries()) {
        const until = refusedUntil[i];
        if (until !== undefined) denials.remember(account, sentAt, until);
        decided({ request, time: now, isLocal: false, isAccepted: until === undefined });
      }
    }
  }

  return gateway;
}

const countOf = (checks) => checks.reduce((sum, { requests }) => sum + requests.length, 0);
