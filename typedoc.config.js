import { SUBPATHS } from './scripts/subpaths.mjs';

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
  intentionallyNotExported: [
    'AttemptAction',
    'ClaimEvent',
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
