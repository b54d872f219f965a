import { mkdirSync, writeFileSync } from 'node:fs';
import { chartSvg } from './chart.mjs';
import { page } from './page.mjs';
import { loadResult, resultFile } from './results.mjs';
import { summaryPage } from './summary.mjs';
import { loadTopic, TOPICS } from './topics.mjs';

/** @returns `summary` and `full`, pages, and `charts`, SVG by file name */
export async function render(place) {
  const charts = {};
  const sections = [];
  for (const topic of TOPICS) {
    const result = loadResult(place, topic);
    if (result === undefined) continue;
    const report = (await loadTopic(topic)).report(result);
    if (report.chart !== undefined) charts[`${topic}.svg`] = chartSvg(report.chart);
    const image = report.chart && `${topic}.svg`;
    sections.push({ topic, report, provenance: result.provenance, image, file: resultFile(place, topic) });
  }
  return { summary: summaryPage(sections, place.summary), full: page(sections), charts };
}

/** Writes the summary, and the tables and charts of all topics. */
export async function writePages(place) {
  const { summary, full, charts } = await render(place);
  mkdirSync(place.reports, { recursive: true });
  for (const [name, svg] of Object.entries(charts)) writeFileSync(new URL(name, place.reports), svg);
  writeFileSync(new URL('README.md', place.reports), full);
  writeFileSync(place.summary, summary);
}
