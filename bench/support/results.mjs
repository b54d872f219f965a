import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url);

/** What is published, and what a quick or partial run leaves, which must not take its place. */
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

/** Six digits are more than any figure here is sure of; what is counted stays whole. */
const rounded = (_, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;

/** The innermost lists and objects on a line each: a difference of two runs stays readable. */
export function toJson(result) {
  const oneLine = (match) => match.replace(/\s*\n\s*/g, ' ');
  return `${JSON.stringify(result, rounded, 2).replace(/[[{][^[\]{}"]*[\]}]|\{[^[\]{}]*\}/g, oneLine)}\n`;
}

export function saveResult(folder, topic, result) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL(`${topic}.json`, folder), toJson(result));
}

/** @returns undefined where the topic was never measured */
export function loadResult(folder, topic) {
  const file = new URL(`${topic}.json`, folder);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}
