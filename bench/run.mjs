// npm run bench: every topic, or those of --topic; tables on stdout, JSON in bench/results, page and charts in docs. See bench/README.md.
import { parseArgs } from 'node:util';
import { writePage } from './page.mjs';
import { numberOption, refuse } from './support/options.mjs';
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
const matchesContentLength = !Object.values(options).some((value) => value !== undefined && value !== false);
const place = matchesContentLength ? PLACES.published : PLACES.draft;

const chosen = topic.split(',');
for (const name of chosen) {
  if (!TOPICS.includes(name)) refuse(`--topic ${name}: there are ${TOPICS.join(', ')}`);
}
installPeers();
// Before all else: meanwhile somebody may commit.
const where = provenance();
const began = performance.now();
for (const [i, name] of chosen.entries()) {
  const { measure, report } = await loadTopic(name);
  const tell = (text) => {
    const minutes = ((performance.now() - began) / 60_000).toFixed(1);
    progress(`${name}, ${i + 1} of ${chosen.length}, ${minutes} min: ${text}`);
  };
  try {
    const { versions, ...figures } = await measure({ ...options, progress: tell });
    const result = { provenance: { ...where, date: new Date().toISOString(), quick, versions }, ...figures };
    saveResult(place.results, name, result);
    endProgress();
    console.log(`${section(name, report(result), result.provenance)}\n`);
  } catch (error) {
    // The others are worth having; the page keeps what this one measured before.
    endProgress();
    console.error(`${name} failed:`, error);
    process.exitCode = 1;
  }
}
await writePage(place);
