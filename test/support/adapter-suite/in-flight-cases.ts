import {
  type AdapterCase,
  type AdapterFixture,
  assertEqual,
  chunks,
  deferred,
  limitFields,
  pause,
  readProblem,
  waitUntil,
} from './fixture.ts';

const isIdle = (fixture: AdapterFixture): Promise<void> =>
  waitUntil(() => fixture.running === 0, 'no request in flight');

/** The handler answers `done` once the result is resolved. */
function answerLater(fixture: AdapterFixture): ReturnType<typeof deferred> {
  const mayRespond = deferred();
  fixture.handler = async (_, write) => {
    await mayRespond.promise;
    write({ body: 'done' });
  };
  return mayRespond;
}

/** The handler streams `one `, and `two` once the result is resolved. */
function streamLater(fixture: AdapterFixture): ReturnType<typeof deferred> {
  const mayEnd = deferred();
  fixture.handler = (_, write) =>
    write({
      body: (async function* () {
        yield* chunks('one ');
        await mayEnd.promise;
        yield* chunks('two');
      })(),
    });
  return mayEnd;
}

/** Cases about requests in flight (S29). */
export const IN_FLIGHT_CASES: readonly AdapterCase[] = [
  {
    name: 'S29: a request is in flight until its response has ended; one too many gets a 429 without retry-after',
    options: { inFlight: 1 },
    async run(fixture) {
      const mayRespond = answerLater(fixture);
      const first = fixture.send();
      await waitUntil(() => fixture.runs === 1, 'the handler runs');
      const rejected = await fixture.send();
      assertEqual(readProblem(rejected), [429, 'api/too_many_requests']);
      assertEqual(limitFields(rejected), {});
      assertEqual(JSON.parse(rejected.text).detail, '1 of at most 1 requests are running; retry when one has ended.');
      mayRespond.resolve();
      assertEqual([(await first).text, await fixture.remaining()], ['done', 999]);
      await isIdle(fixture);
      assertEqual([(await fixture.send()).text, (await fixture.send({ method: 'HEAD' })).status], ['done', 200]);
      fixture.handler = (_, write) => write({ status: 204 });
      assertEqual((await fixture.send()).status, 204);
      await isIdle(fixture);
    },
  },
  {
    name: 'S29: a streamed response counts until its end',
    options: { inFlight: 1 },
    async run(fixture) {
      const mayEnd = streamLater(fixture);
      const response = await fixture.fetch({});
      const reader = response.body?.getReader();
      assertEqual(new TextDecoder().decode((await reader?.read())?.value), 'one ');
      assertEqual([(await fixture.send()).status, fixture.running], [429, 1]);
      mayEnd.resolve();
      assertEqual(new TextDecoder().decode((await reader?.read())?.value), 'two');
      await reader?.read();
      await isIdle(fixture);
    },
  },
  {
    name: 'S29: a handler that fails, before or after it began to respond, gives the slot back',
    options: { inFlight: 1 },
    async run(fixture) {
      fixture.handler = () => Promise.reject(new Error('the handler failed'));
      // Some frameworks answer, others break the connection off, and a bare server ends its process.
      await Promise.race([fixture.send().catch(() => {}), pause(2_000)]);
      await isIdle(fixture);
    },
  },
  {
    name: 'S29: a client that disconnects gives the slot back, before the response and in the middle of a stream',
    needs: 'a connection',
    options: { inFlight: 1 },
    async run(fixture) {
      const mayRespond = answerLater(fixture);
      const client = new AbortController();
      const first = fixture.send({ signal: client.signal }).catch(() => {});
      await waitUntil(() => fixture.runs === 1, 'the handler runs');
      client.abort();
      await first;
      await pause();
      mayRespond.resolve();
      await isIdle(fixture);
      const mayEnd = streamLater(fixture);
      const next = new AbortController();
      const response = await fixture.fetch({ signal: next.signal });
      await response.body?.getReader().read();
      next.abort();
      await pause();
      mayEnd.resolve();
      await isIdle(fixture);
    },
  },
  {
    name: 'S29: a keyed duplicate that waits for the original, and one that gets a replay, hold no slot',
    options: { inFlight: 2 },
    async run(fixture) {
      const mayRespond = answerLater(fixture);
      const first = fixture.send({ key: 'k' });
      await waitUntil(() => fixture.runs === 1, 'the handler runs');
      const duplicate = fixture.send({ key: 'k' });
      await pause();
      const other = fixture.send();
      await waitUntil(() => fixture.runs === 2, 'another request runs');
      assertEqual([fixture.running, (await fixture.send()).status], [2, 429]);
      mayRespond.resolve();
      assertEqual([(await first).text, (await duplicate).text, (await other).text], ['done', 'done', 'done']);
      await isIdle(fixture);
      assertEqual([(await fixture.send({ key: 'k' })).text, fixture.runs, fixture.running], ['done', 2, 0]);
    },
  },
];
