import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url);

/** Where a full run writes, and where a quick or partial run writes, so that it does not replace published results. */
export const PLACES = {
  published: {
    results: new URL('bench/results/', ROOT),
    page: new URL('docs/benchmarks.md', ROOT),
    charts: new URL('docs/benchmarks/', ROOT),
  },
  draft: {
    results: new URL('bench/results/draft/', ROOT),
    page: new URL('bench/results/draft/benchmarks.md', ROOT),
    charts: new URL('bench/results/draft/benchmarks/', ROOT),
  },
};

/** Six digits are more than the precision of any figure here. Whole numbers are counts and stay exact. */
const rounded = (_, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;

/** JSON with each innermost list or object on one line, so that the diff of two runs stays readable. */
export function toJson(result) {
  const oneLine = (match) => match.replace(/\s*\n\s*/g, ' ');
  return `${JSON.stringify(result, rounded, 2).replace(/[[{][^[\]{}"]*[\]}]|\{[^[\]{}]*\}/g, oneLine)}\n`;
}

export function saveResult(folder, topic, result) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL(`${topic}.json`, folder), toJson(result));
}

/** @returns undefined if the topic was never measured */
export function loadResult(folder, topic) {
  const file = new URL(`${topic}.json`, folder);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}
