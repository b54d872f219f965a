/** A worker sends its events in batches, only while clients listen, and never more than its channel takes. */
import type { Decision } from 'headgate';
import { parseLimit } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { createWindowSet } from 'headgate/stores';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Traffic } from '../../src/traffic/traffic.ts';
import { EventOutbox } from '../../src/workers/event-outbox.ts';
import type { WorkerEvents } from '../../src/workers/messages.ts';

const PLAN = createWindowSet([], parseLimit(['10000/1m']));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function start() {
  const store = createMemoryStore();
  const traffic = new Traffic();
  traffic.turn(true);
  const sent: WorkerEvents[] = [];
  let finish: () => void = () => {};
  const send = (message: WorkerEvents): Promise<void> => {
    sent.push(structuredClone(message));
    return new Promise((resolve) => {
      finish = resolve;
    });
  };
  const outbox = new EventOutbox(traffic, send);
  const decide = (account: string) => {
    const decision: Decision = store.consume(account, 'GET /x', PLAN, 1);
    traffic.onEvent({ type: 'decision', requestId: account, decision });
  };
  return { traffic, sent, outbox, decide, finish: () => finish() };
}
const accountsOf = (events: WorkerEvents['events']) => events.map(({ about }) => about?.account);

it('sends nothing while nobody listens; then the missed events, and the next ones together', async () => {
  const { traffic, sent, outbox, decide } = start();
  decide('a');
  traffic.onState({ state: 'reloaded' });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent).toEqual([]);
  expect(accountsOf(outbox.turn(true))).toEqual(['a']);
  decide('b');
  traffic.onState({ state: 'reloaded' });
  decide('c');
  await vi.advanceTimersByTimeAsync(100);
  expect(sent.map(({ events }) => accountsOf(events))).toEqual([['b', 'c']]);
  expect(outbox.turn(false)).toEqual([]);
  decide('d');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent).toHaveLength(1);
  expect(accountsOf(outbox.turn(true))).toEqual(['d']);
});

it('waits until the channel took a message, and counts the events beyond the bound', async () => {
  const { sent, outbox, decide, finish } = start();
  outbox.turn(true);
  decide('a');
  await vi.advanceTimersByTimeAsync(100);
  for (let i = 0; i < 1_200; i += 1) decide('b');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent).toHaveLength(1);
  finish();
  await vi.advanceTimersByTimeAsync(100);
  expect(sent[1]?.events).toHaveLength(1_000);
  expect(sent[1]?.dropped).toBe(200);
});

it('another process shows them: filtered, in order, and with the count of the lost', () => {
  const { traffic, outbox, decide } = start();
  decide('a');
  decide('b');
  const primary = new Traffic();
  primary.turn(true);
  const written: string[] = [];
  const filter = { types: ['decision' as const], account: 'b', sample: 1 };
  const sink = { write: (text: string) => written.push(text) > 0, onDrain: () => {} };
  primary.subscribe({ token: 't', filter, sink });
  primary.addSent(outbox.turn(true), 3);
  expect(written).toEqual([
    expect.stringMatching(/^id: 2\nevent: decision\ndata: \{"at":"[^"]+","req_id":"b","account":"b",/),
    'event: dropped\ndata: {"count":3}\n\n',
  ]);
  // The same text as that of the worker itself.
  const own: string[] = [];
  traffic.subscribe({ token: 't', filter, sink: { ...sink, write: (text) => own.push(text) > 0 }, after: 0 });
  expect(own).toEqual(written.slice(0, 1));
});
