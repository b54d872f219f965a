// npm run bench measures every topic, or those of --topic. It prints tables on stdout and writes JSON to bench/results,
// the page and its charts to docs. See bench/README.md.
import { parseArgs } from 'node:util';
import { writePage } from './page.mjs';
import { numberOption, usageError } from './support/options.mjs';
import { section } from './support/page.mjs';
import { installPeers } from './support/peers.mjs';
import { endProgress, progress } from './support/progress.mjs';
import { provenance } from './support/provenance.mjs';
import { PLACES, saveResult } from './support/results.mjs';
import { loadTopic, TOPICS } from './support/topics.mjs';

const { values } = parseArgs({
  options: {
    topic: { type: 'string', default: TOPICS.join(',') },
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    against: { type: 'string' },
    'cpu-prof': { type: 'string' },
  },
});
const { topic, quick, only, against, 'cpu-prof': profile } = values;
const [rounds, seconds] = [numberOption(values, 'rounds', true), numberOption(values, 'seconds')];
const options = { quick, only, against, profile, rounds, seconds };
const isFullRun = !Object.values(options).some((value) => value !== undefined && value !== false);
const place = isFullRun ? PLACES.published : PLACES.draft;

const chosen = topic.split(',');
for (const name of chosen) {
  if (!TOPICS.includes(name)) usageError(`--topic: unknown topic "${name}" (expected ${TOPICS.join(', ')})`);
}
installPeers();
// Read first, because there may be a new commit before the run ends.
const origin = provenance();
const began = performance.now();
for (const [i, name] of chosen.entries()) {
  const { measure, report } = await loadTopic(name);
  const showProgress = (text) => {
    const minutes = ((performance.now() - began) / 60_000).toFixed(1);
    progress(`${name}, ${i + 1} of ${chosen.length}, ${minutes} min: ${text}`);
  };
  try {
    const { versions, ...figures } = await measure({ ...options, progress: showProgress });
    const result = { provenance: { ...origin, date: new Date().toISOString(), quick, versions }, ...figures };
    saveResult(place.results, name, result);
    endProgress();
    console.log(`${section(name, report(result), result.provenance)}\n`);
  } catch (error) {
    // The other topics still run. The page shows the earlier result of this topic.
    endProgress();
    console.error(`${name} failed:`, error);
    process.exitCode = 1;
  }
}
await writePage(place);
