import type { ClaimId, ClaimPage, ListedClaim } from '../core/ports.ts';
import { assertEqual } from './assert-equal.ts';
import type { ClaimFixture } from './claim-fixture.ts';

/** A page of the store. */
export type List = (cursor: string | undefined, count: number) => Promise<ClaimPage>;

const SCOPE = 'listed';
/** Other stores can keep their keys on the same server, so that most pages are empty. */
const MOST_PAGES = 100_000;
const idOf = (key: string | number): ClaimId => ({ scope: SCOPE, key: `k${key}` });

/** Every claim that a whole scan returns, by scope and key. */
async function scan(list: List, count = 1_000, between?: () => Promise<void>): Promise<Map<string, ListedClaim>> {
  const found = new Map<string, ListedClaim>();
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page++) {
    const { claims, looked, next } = await list(cursor, count);
    if (looked < claims.length) throw new Error(`the store has looked at ${looked} keys and found ${claims.length}`);
    for (const claim of claims) found.set(nameOf(claim), claim);
    if (next === undefined) return found;
    cursor = next;
    await between?.();
  }
  throw new Error('the scan has no end');
}

function nameOf({ scope, key }: ClaimId): string {
  return JSON.stringify([scope, key]);
}

/** Tests of `list`, which is optional, by their names. */
export const CLAIM_LIST_CASES: Readonly<Record<string, (fixture: ClaimFixture, list: List) => Promise<void>>> = {
  async 'list returns every claim as inspect does, without its owner, its fingerprint and its value, and changes nothing'(
    fixture,
    list,
  ) {
    const { store, clock } = fixture;
    const common = { token: 'the-owner', fingerprint: 'the-fingerprint', retentionMs: 100_000 };
    const begin = { ...common, leaseMs: 1_000, onOrphan: 'reexecute', dispatch: true } as const;
    const states = ['orphan', 'inherited', 'running', 'released', 'completed', 'without a value'];
    const ids = states.map(idOf);
    const [orphan, inherited, running, released, completed, empty] = ids as [ClaimId, ...ClaimId[]];
    for (const id of [orphan, inherited as ClaimId]) await store.begin(id, begin);
    clock.advance(1_000);
    await store.begin(inherited as ClaimId, { ...begin, token: 'another-owner' });
    await store.begin(running as ClaimId, { ...begin, dispatch: false });
    await store.begin(released as ClaimId, begin);
    await store.abandon(released as ClaimId, { ...common, generation: 1, releasedRetentionMs: 50_000 });
    await store.complete(completed as ClaimId, { ...common, result: { status: '201', value: 'the-value' } });
    await store.complete(empty as ClaimId, { ...common, result: { status: '202', value: undefined } });
    clock.advance(10);
    const inspected = async () => Promise.all(ids.map((id) => store.inspect(id)));
    const before = await inspected();
    const found = await scan(list);
    const shown = ids.map((id) => inOrder(found.get(nameOf(id))));
    const expected = before.map((view, i) => {
      if (view === undefined) return undefined;
      const { owner: _, fingerprint: _fingerprint, result, ...rest } = view;
      const valueBytes = result?.value === undefined ? undefined : 9;
      return inOrder({ ...rest, ...(ids[i] as ClaimId), status: result?.status, valueBytes });
    });
    assertEqual(shown, expected);
    assertEqual(found.size, ids.length);
    assertEqual(await inspected(), before);
  },
  async 'list: a claim that is there during the whole scan is found, while others come and go, whatever the page'(
    fixture,
    list,
  ) {
    const stays = Array.from({ length: 60 }, (_, i) => idOf(i));
    for (const id of stays) await fixture.begin('a', { id });
    for (const count of [7, 1_000]) {
      let next = 0;
      const found = await scan(list, count, async () => {
        if (next >= 200) return;
        const id = idOf(`other-${count}-${next++}`);
        await fixture.begin('a', { id });
        if (next % 2 === 0) return;
        const command = { token: 'a', fingerprint: 'f', retentionMs: 0, releasedRetentionMs: 0, generation: 1 };
        await fixture.store.abandon(id, command);
      });
      assertEqual(
        stays.filter((id) => !found.has(nameOf(id))),
        [],
      );
    }
  },
  async 'list: of different scopes and keys each is found, whatever its characters'(fixture, list) {
    const ids = ['', '%', '%0025', ':', 'a:b', '{}', '*', 'ü', '\ud800', '\udfff', '\ufffd', '[a]', '\\'].flatMap(
      (text) => [
        { scope: text, key: 'k' },
        { scope: 'a', key: text },
      ],
    );
    for (const id of ids) await fixture.begin('a', { id });
    const found = await scan(list);
    assertEqual([...found.keys()].sort(), ids.map(nameOf).sort());
  },
  async 'list: a claim that has expired is not found'(fixture, list) {
    await fixture.begin('a', { id: idOf(1), retentionMs: 2_000 });
    await fixture.begin('a', { id: idOf(2) });
    fixture.clock.advance(2_000);
    assertEqual([...(await scan(list)).keys()], [nameOf(idOf(2))]);
  },
  async 'list: a cursor that the store cannot have made is an OptionError'(_fixture, list) {
    for (const cursor of ['', 'x', '\u0000', '0/0', 'x'.repeat(10_000)]) {
      const code = await list(cursor, 10).then(
        () => 'a page',
        (error: { readonly code?: unknown }) => error.code,
      );
      assertEqual(code, 'invalid_option');
    }
  },
};

/** A claim with its properties in one order. */
function inOrder(claim: object | undefined): unknown {
  return claim && Object.fromEntries(Object.entries(claim).sort(([a], [b]) => (a < b ? -1 : 1)));
}
