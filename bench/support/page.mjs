import { origin } from './provenance.mjs';
import { table } from './table.mjs';

/**
 * One section, as the page and a terminal show it.
 * @param report what the topic's `report` gives: `{ title, markdown, targets, chart }`
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

/** @param sections `{ topic, report, provenance, image }` in order */
export function page(sections) {
  const rows = sections.map(({ report: { title, targets = [] }, provenance }) => [
    `[${title}](#${anchor(title)})`,
    summary(targets),
    provenance.date.slice(0, 10),
    provenance.commit,
  ]);
  return `# Benchmarks

How fast headgate is, compared with other libraries (*peers*) and with bare code as a baseline (*floors*), and which of
its targets it misses. \`npm run bench\` writes this page from \`bench/results\`; it is never edited by hand.
\`npm run bench:page\` writes it again from the same figures.

- Candidates take turns, round by round. A figure is the median of the rounds (bytes per key: one run).
- Machines are noisy: a ratio within a round is worth more than a time.
- ✓ means that a target is met, ✗ that it is missed. A ~ means that the verdict is undecided: fewer than three rounds in
  four agree with it.
- Each peer is used as its own documentation says. If it does less than headgate, the table says what.

${table(['', 'targets met', 'measured', 'commit'], rows)}

${sections.map(({ topic, report, provenance, image }) => section(topic, report, provenance, image)).join('\n\n')}
`;
}

function summary(targets) {
  if (targets.length === 0) return '';
  const count = (name) => targets.filter((target) => target[name]).length;
  const undecided = count('undecided');
  return `${count('met')} of ${targets.length}${undecided > 0 ? `, ${undecided} undecided` : ''}`;
}

/** The anchor that GitHub gives a heading. */
function anchor(title) {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');
}
