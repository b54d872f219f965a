// The polite tenant of the topic fairness. Its requests are due at fixed times, and a latency is counted from the time
// at which the request was due. So a gateway that stalls cannot hide the requests that had to wait.
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { answerWith } from 'headgate-bench/member';
import { mainThreadMs } from 'headgate-bench/process-figures';
import { POLITE, requestBytes } from './fairness-tenants.mjs';
import { createResponseReader } from './response-reader.mjs';

const CONNECTIONS = 8;
/** Requests per second, half of them with an idempotency key. */
const PER_SECOND = 200;
/** Requests without an answer by then count as failed. */
const ANSWER_MS = 10_000;

const BODY = JSON.stringify({ account_id: POLITE, to: 'ann@example.com', text: 'hello' });
const GET = requestBytes(`GET /messages?account_id=${POLITE}`, POLITE, {});
let count = 0;
const nextRequest = () =>
  ++count % 2 === 0
    ? GET
    : requestBytes(
        'POST /messages',
        POLITE,
        { 'content-type': 'application/json', 'idempotency-key': `${process.pid}-${count}` },
        BODY,
      );

/** One connection: each request is sent when it is due and the one before it is answered. */
class Connection {
  #socket;
  #due = [];
  #isWaiting = false;

  constructor(port, onAnswer) {
    this.port = port;
    this.onAnswer = onAnswer;
  }

  add(request) {
    this.#due.push(request);
    this.#sendNext();
  }

  close() {
    this.#due = [];
    this.#isWaiting = false;
    this.#socket?.destroy();
  }

  #sendNext() {
    if (this.#isWaiting || this.#due.length === 0) return;
    this.#isWaiting = true;
    this.#socket ??= this.#open();
    this.#socket.write(this.#due[0].bytes);
  }

  #open() {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    socket.on(
      'data',
      createResponseReader((status, head) => this.#answered(status, head)),
    );
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#socket = undefined;
      if (this.#isWaiting) this.#answered(0, '');
    });
    return socket;
  }

  #answered(status, head) {
    this.#isWaiting = false;
    this.onAnswer(this.#due.shift(), status, head);
    this.#sendNext();
  }
}

/** Why an answer is not what the tenant is entitled to; undefined if it is. An answer without limits was degraded. */
function problemOf(status, head) {
  if (status === 0) return 'connection closed';
  if (status !== 200) return String(status);
  return /\r\nx-ratelimit-limit:/i.test(head) ? undefined : 'degraded';
}

/** `pid` is the process of the gateway. */
async function load({ port, pid, seconds }) {
  const latencies = [];
  /** By how much the gateway's processor time grew from when a request was due until its answer, in milliseconds. */
  const work = [];
  const problems = {};
  const amount = Math.round(PER_SECOND * seconds);
  const fail = (problem) => {
    problems[problem] = (problems[problem] ?? 0) + 1;
  };
  const open = new Set();
  let allAnswered;
  const end = new Promise((resolve) => {
    allAnswered = resolve;
  });
  const onAnswer = (request, status, head) => {
    open.delete(request);
    latencies.push(performance.now() - request.dueAt);
    work.push(mainThreadMs(pid) - request.workBefore);
    const problem = problemOf(status, head);
    if (problem !== undefined) fail(problem);
    if (latencies.length === amount) allAnswered();
  };
  const connections = Array.from({ length: CONNECTIONS }, () => new Connection(port, onAnswer));
  const began = performance.now();
  for (let i = 0; i < amount; i++) {
    const dueAt = began + (i * 1_000) / PER_SECOND;
    const early = dueAt - performance.now();
    if (early > 0) await wait(early);
    const request = { dueAt, workBefore: mainThreadMs(pid), bytes: nextRequest() };
    open.add(request);
    connections[i % CONNECTIONS].add(request);
  }
  const late = new AbortController();
  await Promise.race([end, wait(ANSWER_MS, undefined, { signal: late.signal }).catch(() => {})]);
  late.abort();
  for (const { dueAt, workBefore } of open) {
    latencies.push(performance.now() - dueAt);
    work.push(mainThreadMs(pid) - workBefore);
    fail('no answer');
  }
  for (const connection of connections) connection.close();
  const failed = Object.values(problems).reduce((sum, number) => sum + number, 0);
  return {
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    workP99Ms: quantile(work, 0.99),
    failedShare: failed / amount,
    problems,
  };
}

function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1];
}

answerWith(load);
