import { describe, expect, it } from 'vitest';
import { fieldOfBody } from '../../src/adapters/fetch.ts';
import { fingerprint } from '../../src/http/fingerprint/fingerprint.ts';
import { inSlices } from '../../src/http/in-slices.ts';
import { turnsOf } from '../support/turns.ts';

describe('a long body that is in memory does not block the event loop', () => {
  it('passes every byte on, in order, with a pause after every 64 KiB', async () => {
    const body = Buffer.alloc(300_000, '0123456789');
    const slices: Buffer[] = [];
    const chunks = [body.subarray(0, 200_000), body.subarray(200_000, 200_001), body.subarray(200_001)];
    const turns = await turnsOf(inSlices(chunks, (slice) => slices.push(Buffer.from(slice))));
    expect(Buffer.concat(slices).equals(body)).toBe(true);
    expect(turns).toBeGreaterThanOrEqual(4);
  });

  it('has no pause in a short body', async () => {
    let passed = 0;
    const chunks = [Buffer.alloc(30_000), Buffer.alloc(30_000)];
    const isFirst = Promise.race([
      inSlices(chunks, (slice) => (passed += slice.length)).then(() => true),
      new Promise((resolve) => setImmediate(() => resolve(false))),
    ]);
    expect(await isFirst).toBe(true);
    expect(passed).toBe(60_000);
  });

  it('makes fingerprints and reads fields in slices', async () => {
    const body = Buffer.from(
      JSON.stringify({ account_id: 'acc_1', list: Array.from({ length: 200_000 }, (_, i) => i) }),
    );
    const head = { method: 'POST', path: '/', contentType: 'application/json' };
    const source = async function* () {
      yield body;
    };
    const slices = Math.floor(body.length / 65_536);
    expect(await turnsOf(fingerprint({ ...head, body: source() }))).toBeGreaterThanOrEqual(slices);
    const request = new Request('http://h/', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    expect(await turnsOf(fieldOfBody(request, 'account_id', { maxBytes: 5_000_000 }))).toBeGreaterThanOrEqual(slices);
  });
});
