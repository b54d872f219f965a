import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { Envelope, keyIdOf, keyName, WRAPPED } from '../../src/security/envelope.ts';

const [old, current] = [
  { id: 'k1', key: randomBytes(32) },
  { id: 'k2', key: randomBytes(32) },
];
const PLACE = 'accounts/acc_1/secret';

test('a rewrapped value is under the current key, and only its wrapped key has changed', () => {
  const before = new Envelope([old]).seal(PLACE, Buffer.from('secret'));
  const after = new Envelope([current, old]).rewrap(PLACE, before);
  expect([keyIdOf(before), keyIdOf(after)]).toEqual(['k1', 'k2']);
  expect(new Envelope([current]).open(PLACE, after).toString()).toBe('secret');
  // The nonce, the encrypted value and its tag.
  const rest = 12 + 'secret'.length + 16;
  expect(Buffer.from(after).subarray(-rest)).toEqual(Buffer.from(before).subarray(-rest));
  expect(Buffer.from(after).subarray(0, -rest)).not.toEqual(Buffer.from(before).subarray(0, -rest));
});

test('the head of a value is enough', () => {
  const before = Buffer.from(new Envelope([{ ...old, id: 'older' }]).seal(PLACE, Buffer.from('secret')));
  const both = new Envelope([current, { ...old, id: 'older' }]);
  const length = keyName('older').length + WRAPPED;
  const after = Buffer.concat([both.rewrap(PLACE, before.subarray(0, length)), before.subarray(length)]);
  expect(new Envelope([current]).open(PLACE, after).toString()).toBe('secret');
});

test('a value of another place, of an unknown key or of a damaged key is not rewrapped', () => {
  const sealed = new Envelope([old]).seal(PLACE, Buffer.from('secret'));
  const both = new Envelope([current, old]);
  expect(() => both.rewrap('accounts/acc_2/secret', sealed)).toThrow();
  expect(() => new Envelope([current]).rewrap(PLACE, sealed)).toThrow(/"k1", which is not in SECRET_KEYS/);
  const damaged = Buffer.from(sealed);
  damaged.writeUInt8(damaged.readUInt8(20) ^ 1, 20);
  expect(() => both.rewrap(PLACE, damaged)).toThrow();
});

test('derived keys come from the root, so they survive a rotation; older values are read with the master keys', () => {
  const root = randomBytes(32);
  const [before, after] = [new Envelope([old], root), new Envelope([current, old], root)];
  expect(after.derive('fingerprint')).toEqual(before.derive('fingerprint'));
  expect(after.derive('fingerprint')).not.toEqual(after.derive('csrf'));
  expect(after.deriveAll('tracking')[0]).toEqual(before.derive('tracking'));
  expect(after.deriveAll('tracking')).toContainEqual(new Envelope([old]).derive('tracking'));
});
