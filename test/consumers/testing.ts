// The suites for stores and adapters of one's own.
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { createMemoryStore } from 'headgate/memory';
import { createFakeClock, limitStoreSuite } from 'headgate/testing';

limitStoreSuite({ describe, it }, fc, { name: 'mine', create: (clock) => createMemoryStore({ clock }) });
createFakeClock(0).advance(1);
