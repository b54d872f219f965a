import type { GateOptions } from '../../../src/gate/options.ts';
import { type AdapterCase, assertEqual, limitFields } from './fixture.ts';

type AnswerOption = NonNullable<GateOptions<unknown>['answer']>;

/** A page in place of the error object. */
const asPage: AnswerOption = ({ status, type }) => ({
  status: status === 429 ? 418 : status,
  headers: { 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': '1', 'x-own': ['a', 'b'] },
  body: `<p>ü ${type}</p>`,
});
const PAGE = '<p>ü api/too_many_requests</p>';
const WINDOW = {
  'retry-after': '60',
  'x-ratelimit-limit': '1',
  'x-ratelimit-remaining': '0',
  'x-ratelimit-reset': '60',
};

const BODIES: readonly [string, Uint8Array][] = [
  ['nothing', new Uint8Array(0)],
  ['bytes', new Uint8Array([0, 255])],
];

/** Cases about answers of one's own (`answer`). */
export const ANSWER_CASES: readonly AdapterCase[] = [
  {
    name: 'an answer of your own is sent as it is, with the fields of the gate that it does not set itself',
    options: { limit: ['1/1m'], answer: asPage },
    async run(fixture) {
      await fixture.send();
      const page = await fixture.send();
      assertEqual([page.status, page.text, fixture.runs], [418, PAGE, 1]);
      const names = ['content-type', 'content-length', 'x-own', 'cache-control'];
      assertEqual(
        names.map((name) => page.headers.get(name)),
        ['text/html; charset=utf-8', String(page.bytes.length), 'a, b', 'no-store'],
      );
      assertEqual(limitFields(page), WINDOW);
    },
  },
  {
    name: 'an answer of your own to HEAD has no body',
    options: { limit: ['1/1m'], answer: asPage },
    async run(fixture) {
      await fixture.send({ method: 'HEAD' });
      const head = await fixture.send({ method: 'HEAD' });
      assertEqual([head.status, head.text, head.headers.get('x-own')], [418, '', 'a, b']);
      assertEqual(limitFields(head), WINDOW);
    },
  },
  ...BODIES.map(
    ([what, body]): AdapterCase => ({
      name: `an answer of your own can have ${what} as its body`,
      options: { limit: ['1/1m'], answer: () => ({ status: 400, headers: { 'x-own': '1' }, body }) },
      async run(fixture) {
        await fixture.send();
        const reply = await fixture.send();
        assertEqual([reply.status, reply.headers.get('x-own'), [...reply.bytes]], [400, '1', [...body]]);
      },
    }),
  ),
  {
    name: 'I4: an answer of your own is not stored, and a stored response is not answered again',
    options: { limit: ['2/1m'], answer: asPage },
    async run(fixture) {
      fixture.handler = (_, write) => write({ status: 409, headers: { 'content-type': 'text/plain' }, body: 'taken' });
      await fixture.send({ key: 'first' });
      const replay = await fixture.send({ key: 'first' });
      assertEqual([replay.status, replay.text, replay.headers.get('idempotency-replayed')], [409, 'taken', 'true']);
      const other = await fixture.send({ key: 'first', body: '{"a":2}' });
      assertEqual([other.status, other.text], [409, '<p>ü errors/already_used</p>']);
      await fixture.send();
      assertEqual((await fixture.send({ key: 'second' })).status, 418);
      fixture.clock.advance(60_000);
      const retry = await fixture.send({ key: 'second' });
      assertEqual([retry.status, retry.headers.get('idempotency-replayed'), fixture.runs], [409, null, 3]);
    },
  },
  {
    name: 'S8: behind another gate, an answer of your own to a rejection has the fields of the gate that rejected, and those only',
    options: { limit: ['1/1m'], answer: asPage, outer: { headers: ['x-ratelimit', 'ietf'] } },
    async run(fixture) {
      await fixture.send({ key: 'first' });
      for (const key of [undefined, 'second']) {
        const page = await fixture.send(key === undefined ? {} : { key });
        assertEqual([page.status, page.text, limitFields(page)], [418, PAGE, WINDOW]);
      }
      fixture.clock.advance(60_000);
      const retry = await fixture.send({ key: 'second' });
      assertEqual([retry.status, limitFields(retry)['x-ratelimit-remaining'], fixture.runs], [200, '0', 2]);
    },
  },
];
