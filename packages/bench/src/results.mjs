import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { folderOf } from './topics.mjs';

const ROOT = new URL('../../../', import.meta.url);

/** Outputs of a full run (`published`), and of a quick or partial run, which must not replace published results. */
export const PLACES = {
  published: {
    /** Folder of the results, in the folder of a house's benchmarks. */
    results: 'results/',
    summary: new URL('docs/benchmarks.md', ROOT),
    reports: new URL('reports/benchmarks/', ROOT),
  },
  draft: {
    results: 'results/draft/',
    summary: new URL('reports/benchmarks/draft/summary.md', ROOT),
    reports: new URL('reports/benchmarks/draft/', ROOT),
  },
};

/** @param place one of `PLACES` */
export const resultFile = (place, topic) => new URL(`${place.results}${topic}.json`, folderOf(topic));

/** Six digits are more than the precision of any figure here. Whole numbers are counts and stay exact. */
const rounded = (_, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;

/** JSON with each innermost list or object on one line, so that the diff of two runs stays readable. */
export function toJson(result) {
  const oneLine = (match) => match.replace(/\s*\n\s*/g, ' ');
  return `${JSON.stringify(result, rounded, 2).replace(/[[{][^[\]{}"]*[\]}]|\{[^[\]{}]*\}/g, oneLine)}\n`;
}

export function saveResult(place, topic, result) {
  const file = resultFile(place, topic);
  mkdirSync(new URL('.', file), { recursive: true });
  writeFileSync(file, toJson(result));
}

/** @returns undefined if the topic was never measured */
export function loadResult(place, topic) {
  const file = resultFile(place, topic);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}
