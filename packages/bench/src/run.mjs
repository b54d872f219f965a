#!/usr/bin/env node
// headgate-bench measures the topics of the houses that are named, or of all. It prints tables on stdout and writes JSON
// to the results of each house, the summary to docs/benchmarks.md, and all tables and charts to reports/benchmarks.
// With --page it only writes the summary and the reports again. See packages/bench/README.md.
import { parseArgs } from 'node:util';
import { numberOption, usageError } from './options.mjs';
import { section } from './page.mjs';
import { installPeers } from './peers.mjs';
import { endProgress, progress } from './progress.mjs';
import { provenance } from './provenance.mjs';
import { PLACES, saveResult } from './results.mjs';
import { HOUSES, loadTopic, TOPICS } from './topics.mjs';
import { writePages } from './write-pages.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    topic: { type: 'string' },
    page: { type: 'boolean', default: false },
    draft: { type: 'boolean', default: false },
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
const place = isFullRun && !values.draft ? PLACES.published : PLACES.draft;

for (const name of positionals) {
  if (HOUSES[name] === undefined)
    usageError(
      `unknown house "${name}" (expected ${Object.keys(HOUSES).join(', ')}; a topic is given as --topic NAME)`,
    );
}
const ofHouses = positionals.length > 0 ? positionals.flatMap((name) => HOUSES[name].topics) : TOPICS;
const chosen = topic?.split(',') ?? ofHouses;
for (const name of chosen) {
  if (!ofHouses.includes(name)) usageError(`--topic: unknown topic "${name}" (expected ${ofHouses.join(', ')})`);
}

if (!values.page) await measureAll();
await writePages(place);

async function measureAll() {
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
      saveResult(place, name, result);
      endProgress();
      console.log(`${section(name, report(result), result.provenance)}\n`);
    } catch (error) {
      // The other topics still run. The page shows the earlier result of this topic.
      endProgress();
      console.error(`${name} failed:`, error);
      process.exitCode = 1;
    }
  }
}
