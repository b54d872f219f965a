import { SUBPATHS } from './scripts/subpaths.mjs';

/** Methods that a type derives from a port without promises. The port documents them, but TypeDoc does not follow the derivation. */
const DERIVED = {
  'headgate/memory.MemoryClaimStore': ['abandon', 'begin', 'complete', 'dispatch', 'extend', 'inspect', 'list'],
  'headgate/memory.MemoryStore': ['close', 'consume', 'peek', 'reset', 'settle'],
  // The members by which the type knows a client.
  'headgate/postgres.TransactionOf.__type': ['begin', 'connect', 'transaction'],
  'headgate/stores.SynchronousLimitStore': [
    ...['block', 'blocked', 'charge', 'close', 'consume', 'peek', 'ready', 'reset', 'settle', 'settleOnce', 'unblock'],
  ],
  'headgate/testing.Model': ['block', 'blocked', 'charge', 'peek', 'reset', 'unblock'],
};

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  name: 'headgate',
  // The parts in headgate/internal are for the houses of this repository, without a promise.
  entryPoints: Object.entries(SUBPATHS).flatMap(([subpath, source]) => (subpath === './internal' ? [] : [source])),
  out: 'reports/api',
  readme: 'README.md',
  disableSources: true,
  excludeExternals: true,
  excludeInternal: true,
  excludePrivate: true,
  sort: ['kind', 'instance-first', 'alphabetical-ignoring-documents'],
  intentionallyNotDocumented: Object.entries(DERIVED).flatMap(([type, names]) =>
    names.map((name) => `${type}.${name}`),
  ),
  intentionallyNotExported: [
    'Synchronous',
    'AttemptAction',
    'ClaimEvent',
    'CommonOptions',
    'ClaimStoreStats',
    'LimitStoreStats',
    'ModelLease',
    'OWN_SETTINGS',
    'ProblemArguments',
    'IoredisClient',
    'NodeRedisClient',
    'src/adapters/nest.ts:Options',
  ],
  // The check of types looks at every file. Here they would all be checked once more, in three times as long.
  skipErrorChecking: true,
  treatWarningsAsErrors: true,
  validation: { notExported: true, invalidLink: true, rewrittenLink: true, notDocumented: true },
  requiredToBeDocumented: ['Function', 'Class', 'Interface', 'TypeAlias', 'Variable', 'Method', 'Accessor'],
};
