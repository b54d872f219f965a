// Names that bench/http.mjs still asks for here; to go when it is a topic.
import { PLACES, saveResult } from './results.mjs';

export { inFreshProcess } from './fresh-process.mjs';
export { progress } from './progress.mjs';
export { origin, provenance, versionOf } from './provenance.mjs';
export { median } from './statistics.mjs';
export { table } from './table.mjs';
export const save = (name, result) => saveResult(PLACES.draft.results, name, result);
export const writeSection = () => {
  throw new Error('docs/benchmarks.md is written by npm run bench:page');
};
