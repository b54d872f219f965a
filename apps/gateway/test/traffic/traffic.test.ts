import type { Decision } from 'headgate';
import { parseLimit } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import type { AdjustmentEntry } from 'headgate/stores';
import { createWindowSet } from 'headgate/stores';
import { describe, expect, it } from 'vitest';
import {
  EVENT_TYPES,
  EventFeed,
  type EventFilter,
  type EventSink,
  type Subscription,
} from '../../src/traffic/event-feed.ts';
import { Series } from '../../src/traffic/series.ts';
import { Traffic } from '../../src/traffic/traffic.ts';

const PLAN = createWindowSet([], parseLimit(['5/1m', '1000/1d']));
const store = createMemoryStore();
const decide = (account: string): Decision => store.consume(account, 'GET /x', PLAN, 1);

/** Traffic on a clock that the test moves. */
function start() {
  const clock = { now: 1_000_000 };
  const traffic = new Traffic(() => clock.now);
  traffic.turn(true);
  const add = (account: string, requestId = 'r') =>
    traffic.onEvent({ type: 'decision', requestId, decision: decide(account) });
  return { clock, traffic, add };
}

describe('top accounts', () => {
  it('are those of the last five to ten minutes', () => {
    const { clock, traffic, add } = start();
    const top = () => traffic.top('accepted', 10).accounts.map(({ account, count }) => [account, count]);
    add('early');
    clock.now += 299_999;
    add('early');
    expect(top()).toEqual([['early', 2]]);
    clock.now += 1;
    add('late');
    add('early');
    expect(top()).toEqual([
      ['early', 3],
      ['late', 1],
    ]);
    clock.now += 300_000;
    expect(top()).toEqual([
      ['early', 1],
      ['late', 1],
    ]);
    clock.now += 600_000;
    expect(top()).toEqual([]);
  });

  it('who had the most in the last minute comes first, and before that who had the most at all', () => {
    const { clock, traffic, add } = start();
    const top = () => traffic.top('accepted', 2);
    const counts = () => top().accounts.map(({ account, lastMinute, count }) => [account, lastMinute, count]);
    for (let i = 0; i < 5; i++) add('mended');
    for (let i = 0; i < 4; i++) add('slower');
    expect(counts()).toEqual([
      ['mended', 5, 5],
      ['slower', 4, 4],
    ]);
    clock.now += 60_000;
    add('now');
    expect(counts()).toEqual([
      ['now', 1, 1],
      ['mended', 0, 5],
    ]);
    // An account that is not in the list may have more than those that are.
    expect(top().unlisted).toBe(4);
    expect(traffic.top('accepted', 1).unlisted).toBe(5);
    // The minute goes on over the turn of the halves.
    clock.now = 1_000_000 + 299_000;
    add('now');
    clock.now += 1_000;
    add('now');
    expect(counts()[0]).toEqual(['now', 2, 3]);
  });

  it('have a rate: the average since they are counted, and in the first minute what has come so far', () => {
    const { clock, traffic, add } = start();
    for (let i = 0; i < 6; i++) add('paced');
    expect(traffic.rate('paced')).toEqual({ accepted: 5, rejected: 1 });
    clock.now += 120_000;
    expect(traffic.rate('paced')).toEqual({ accepted: 2.5, rejected: 0.5 });
    clock.now += 180_000;
    add('paced');
    expect(traffic.rate('paced')).toEqual({ accepted: 1, rejected: 0.4 });
    expect(traffic.rate('unseen')).toEqual({ accepted: 0, rejected: 0 });
    clock.now += 600_000;
    expect(traffic.rate('paced')).toEqual({ accepted: 0, rejected: 0 });
  });

  it('near: a window is at least 80 % full; rejected: by the window without room', () => {
    const { traffic, add } = start();
    for (let i = 0; i < 7; i++) add('busy');
    expect(traffic.top('near', 10).accounts).toMatchObject([{ account: 'busy', count: 2 }]);
    expect(traffic.top('rejected', 10).accounts).toMatchObject([
      { account: 'busy', count: 2, route: 'GET /x', tightest: { max: 5, remaining: 0 } },
    ]);
    expect(traffic.top('accepted', 0).accounts).toEqual([]);
  });

  it('while it is off, nothing is remembered', () => {
    const { traffic, add } = start();
    traffic.turn(false);
    add('unseen', 'r1');
    traffic.onAnswered('accepted');
    traffic.onStoreCall(1);
    traffic.onState({ state: 'reloaded' });
    traffic.turn(true);
    expect(traffic.top('accepted', 10).accounts).toEqual([]);
    expect(traffic.find('r1')).toBeUndefined();
  });
});

it('the last 1,000 decisions are found by their id', () => {
  const { traffic, add } = start();
  for (let i = 0; i < 1_001; i++) add('acc', `r${i}`);
  expect(traffic.find('r0')).toBeUndefined();
  expect(traffic.find('r1')?.decision.account).toBe('acc');
  expect(traffic.find('r1000')?.atMs).toBe(1_000_000);
});

it('an orphan that is met twice is listed once, as the last one; the oldest of 1,001 is forgotten', () => {
  const { traffic } = start();
  const meet = (key: string) => traffic.onIdempotency({ type: 'refused', reason: 'orphan', scope: 'app', key });
  meet('first');
  meet('second');
  meet('first');
  expect(traffic.orphans().map(({ key }) => key)).toEqual(['first', 'second']);
  traffic.onIdempotency({ type: 'refused', reason: 'mismatch', scope: 'app', key: 'no orphan' } as never);
  for (let i = 0; i < 999; i++) meet(`${i}`);
  expect(traffic.orphans()).toHaveLength(1_000);
  expect(traffic.orphans().map(({ key }) => key)).not.toContain('second');
});

describe('series', () => {
  it('each second by itself; after 15 minutes its place is another one', () => {
    const series = new Series();
    series.count('accepted', 5_000);
    series.count('accepted', 5_999);
    series.count('rejected', 6_000);
    for (let i = 0; i < 99; i++) series.time(0.000_9, 5_500);
    series.time(0.1, 5_500);
    expect(series.list(2, 7_500)).toMatchObject([
      { atMs: 5_000, accepted: 2, rejected: 0, p50: 1.024, p99: 1.024 },
      { atMs: 6_000, accepted: 0, rejected: 1, p50: undefined },
    ]);
    series.time(0.1, 5_500);
    expect(series.list(2, 7_500)[0]?.p99).toBe(131.072);
    expect(series.list(900, 7_500)).toHaveLength(899);
    series.count('unlimited', 905_000);
    expect(series.list(1, 906_000)).toMatchObject([{ atMs: 905_000, accepted: 0, unlimited: 1, p50: undefined }]);
  });
});

describe('events', () => {
  const all: EventFilter = { types: [...EVENT_TYPES], sample: 1 };
  /** A client that reads only when the test says so. */
  const client = () => {
    let drain: (() => void) | undefined;
    const texts: string[] = [];
    const state = { isSlow: false };
    return {
      texts,
      state,
      sink: {
        write: (text: string) => texts.push(text) > 0 && !state.isSlow,
        onDrain: (listener: () => void) => {
          drain = listener;
        },
      },
      read: () => drain?.(),
    };
  };

  let tokens = 0;
  /** Subscribes with a token of its own, unless the test names one. */
  const subscribe = (feed: EventFeed, sink: EventSink, more: Partial<Subscription> = {}) => {
    const end = feed.subscribe({ token: `t${tokens++}`, filter: all, sink, ...more });
    if (typeof end === 'string') throw new Error(`too many: ${end}`);
    return end;
  };

  it('of eight places a token has three; who leaves makes room', () => {
    const feed = new EventFeed();
    const { sink } = client();
    const ends = ['a', 'a', 'a', 'b', 'b', 'b', 'c'].map((token) => subscribe(feed, sink, { token }));
    const refused = (token: string) => feed.subscribe({ token, filter: all, sink });
    expect(refused('a')).toBe('token');
    expect(subscribe(feed, sink, { token: 'c' })).toBeTypeOf('function');
    expect([refused('a'), refused('c')]).toEqual(['token', 'clients']);
    ends[0]?.();
    expect(subscribe(feed, sink, { token: 'a' })).toBeTypeOf('function');
  });

  it('other limits: each change with its author, and a note if everything was read at once', () => {
    const { traffic } = start();
    const { sink, texts } = client();
    traffic.subscribe({ token: 't', filter: all, sink });
    const limits = [{ target: { account: 'a' }, from: undefined, to: parseLimit(['5/1m']) }];
    const entry: AdjustmentEntry = {
      ...{ version: 17, nonce: 'n', at: 1, by: 'jane', reason: undefined, source: 'expiry', limits },
    };
    traffic.onLimits({ revision: '17.n', entries: [entry] });
    traffic.onLimits({ revision: '19.m', entries: [] });
    const data = texts.map((text) => JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? ''));
    const at = '1970-01-01T00:16:40.000Z';
    expect(data).toEqual([
      {
        ...{ at, version: 17, by: 'jane', reason: null, source: 'expiry' },
        changes: [{ target: { account: 'a' }, old: null, new: ['5/1m'], until: null }],
      },
      { at, version: 19, by: null, reason: null, source: 'read', changes: [] },
    ]);
    expect(texts[0]).toMatch(/^id: 1\nevent: limits\n/);
  });

  it('a slow client loses what does not fit into its queue, and is told how many; the others lose nothing', () => {
    const feed = new EventFeed();
    const [slow, quick] = [client(), client()];
    subscribe(feed, slow.sink);
    subscribe(feed, quick.sink);
    slow.state.isSlow = true;
    for (let i = 0; i < 300; i++) feed.add({ type: 'state', event: { state: 'reloaded' } }, i);
    expect([slow.texts.length, quick.texts.length, feed.dropped]).toEqual([1, 300, 43]);
    slow.state.isSlow = false;
    slow.read();
    expect(slow.texts).toHaveLength(258);
    expect(slow.texts.at(-1)).toBe('event: dropped\ndata: {"count":43}\n\n');
    feed.add({ type: 'state', event: { state: 'reloaded' } }, 301);
    expect(slow.texts.at(-1)).toBe(
      'id: 301\nevent: state\ndata: {"at":"1970-01-01T00:00:00.301Z","state":"reloaded"}\n\n',
    );
  });

  it('are filtered by type, account, route and outcome, and sampled', () => {
    const feed = new EventFeed();
    const filtered = (filter: Partial<EventFilter>) => {
      const { sink, texts } = client();
      subscribe(feed, sink, { filter: { ...all, ...filter } });
      return texts;
    };
    const texts = [
      filtered({ types: ['claim'] }),
      filtered({ account: 'a' }),
      filtered({ route: 'GET /y' }),
      filtered({ outcome: 'accepted' }),
      filtered({ outcome: 'rejected' }),
      filtered({ types: ['decision'], sample: 0 }),
    ];
    feed.add({ type: 'decision', event: { type: 'decision', requestId: 'r', decision: decide('a') } }, 0);
    const error = new Error('secret of a client');
    feed.add({ type: 'claim', event: { type: 'bypassed', error, scope: 'app', key: 'k' } }, 0);
    expect(texts.map(({ length }) => length)).toEqual([1, 1, 0, 1, 0, 0]);
    expect(texts[0]?.[0]).toContain('"application":"app","key":"k","what":"bypassed"}');
    expect(texts.flat().join()).not.toContain('secret');
  });

  it('a client that comes back gets what it has missed, up to 1,000', () => {
    const feed = new EventFeed();
    for (let i = 0; i < 1_100; i++) feed.add({ type: 'state', event: { state: 'reloaded' } }, i);
    const { sink, texts } = client();
    const end = subscribe(feed, sink, { after: 1_097 });
    expect(texts.map((text) => text.split('\n', 1)[0])).toEqual(['id: 1098', 'id: 1099', 'id: 1100']);
    end();
    feed.add({ type: 'state', event: { state: 'reloaded' } }, 0);
    expect(texts).toHaveLength(3);
    const late = client();
    subscribe(feed, late.sink, { after: 0 });
    expect(late.texts).toHaveLength(1_000);
  });
});
