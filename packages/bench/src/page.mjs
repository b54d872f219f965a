import { origin } from './provenance.mjs';
import { summary } from './summary.mjs';
import { table } from './table.mjs';

/**
 * One section, as the page and a terminal show it.
 * @param report the result of the topic's `report`: `{ title, markdown, targets, chart }`
 * @param image path of its chart, relative to the page; undefined in a terminal
 */
export function section(topic, { title, markdown, targets = [], chart }, provenance, image) {
  const parts = [`## ${title}`];
  if (chart !== undefined && image !== undefined) parts.push(`![${chart.title}](${image})`);
  parts.push(markdown.trim());
  if (targets.length > 0) parts.push(targetTable(targets));
  parts.push(origin(provenance, topic));
  return parts.join('\n\n');
}

function targetTable(targets) {
  const rows = targets.map(({ what, measured, wanted, met, undecided }) => [
    what,
    measured,
    wanted,
    `${met ? '✓' : '✗'}${undecided ? ' ~' : ''}`,
  ]);
  return table(['target', 'measured', 'wanted', ''], rows);
}

/** The page of all tables. @param sections `{ topic, report, provenance, image }` in order */
export function page(sections) {
  const rows = sections.map(({ report: { title, targets = [] }, provenance }) => [
    `[${title}](#${anchor(title)})`,
    summary(targets),
    provenance.date.slice(0, 10),
    provenance.commit,
  ]);
  return `# Benchmarks, every table

Each peer is used as its own documentation says. If it does less than headgate, the table says what.

${table(['', 'targets met', 'measured', 'commit'], rows)}

${sections.map(({ topic, report, provenance, image }) => section(topic, report, provenance, image)).join('\n\n')}
`;
}

/** The anchor that GitHub gives a heading. */
function anchor(title) {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');
}
