import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { table } from './table.mjs';

/** The targets of the page's first table, by topic: the figures that a user asks for first. */
const FIGURES = {
  memory: [
    'accepted, 1 key: consumeSync relative to the floor',
    'accepted, 1,000,000 keys: consumeSync relative to the floor',
    'accepted, 1,000 keys: times as fast as rate-limiter-flexible, union of four',
    'accepted, 1,000 keys: times as fast as express-rate-limit, the fastest awaited peer',
  ],
  bytes: ['1,000,000 keys: bytes per key'],
  http: ['node:http: added µs', 'Fastify: added µs', 'Express 5: added µs'],
  redis: [
    'spread 64, ioredis: relative to the floor',
    'spread 64, ioredis: relative to one window of rate-limiter-flexible',
    'spread 1, ioredis: relative to the floor',
  ],
  postgres: ['spread 64: relative to the floor', 'spread 64: relative to four windows of rate-limiter-flexible'],
  idempotency: ['redis replay 64: on ioredis, relative to @node-idempotency/core on node-redis'],
  gateway: [
    'small requests: CPU of headgate, memory relative to the floor',
    'small requests: CPU of headgate, memory relative to fastify',
    'requests with an idempotency key: CPU of headgate, memory relative to the floor',
  ],
  'service-send': ['PostgreSQL: sends per second'],
};

/**
 * The page: the figures that a user asks for first, and how far every topic is from its targets.
 * @param sections `{ topic, report, provenance, file }` in order; `file` is the topic's JSON
 * @param page URL of the page
 */
export function summaryPage(sections, page) {
  const figures = sections.flatMap(({ topic, report: { title, targets = [] } }) =>
    (FIGURES[topic] ?? []).map((what) => {
      const { measured, wanted, ...verdict } = targets.find((one) => one.what === what) ?? missing(topic, what);
      return [`${title}: ${what}`, measured, wanted, mark(verdict)];
    }),
  );
  const topics = sections.map(({ report: { title, targets = [] }, provenance, file }) => [
    `[${title}](${linkTo(file, page)})`,
    summary(targets),
    farthestMiss(targets),
    provenance.date.slice(0, 10),
  ]);
  return `# Benchmarks

How fast headgate is, compared with other libraries (*peers*) and with bare code as a baseline (*floors*), and which of
its targets it misses. A full run of \`npm run bench\` writes this page; nobody edits it.

- Candidates take turns, round by round. A figure is the median of the rounds, with the least and the most in brackets.
- Machines are noisy: a ratio within a round is worth more than a time.
- ✓ means that a target is met, ✗ that it is missed. A ~ means that the verdict is undecided: fewer than three rounds in
  four agree with it.

${table(['', 'measured', 'wanted', ''], figures)}

Every topic, with all its figures as JSON. \`npm run bench:page\` writes their tables and charts, with machine, versions
and commit, to \`reports/benchmarks\`.

${table(['topic', 'targets met', 'the miss that is farthest from its target', 'measured'], topics)}
`;
}

const missing = (topic, what) => {
  throw new Error(`the topic ${topic} has no target "${what}": change FIGURES in packages/bench/src/summary.mjs`);
};

const mark = ({ met, undecided }) => `${met ? '✓' : '✗'}${undecided ? ' ~' : ''}`;

const linkTo = (file, page) => relative(fileURLToPath(new URL('.', page)), fileURLToPath(file));

/** How many targets are met. */
export function summary(targets) {
  if (targets.length === 0) return '';
  const count = (name) => targets.filter((target) => target[name]).length;
  const undecided = count('undecided');
  return `${count('met')} of ${targets.length}${undecided > 0 ? `, ${undecided} undecided` : ''}`;
}

/** The missed target whose figure is off by the greatest factor. */
function farthestMiss(targets) {
  const missed = targets.filter(({ met }) => !met).map((target) => ({ ...target, factor: factorOf(target) }));
  if (missed.length === 0) return '';
  const { what, measured, wanted } = missed.reduce((most, one) => (one.factor > most.factor ? one : most));
  return `${what}: ${measured}, wanted ${wanted}`;
}

function factorOf({ measured, wanted }) {
  const [is, bound] = [measured, wanted].map((text) => Math.abs(Number(/-?[\d.,]+/.exec(text)[0].replaceAll(',', ''))));
  return wanted.startsWith('≥') ? bound / is : is / bound;
}
