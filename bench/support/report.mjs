import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { join } from 'node:path';

/** Where figures come from: without it a figure is a rumour. */
export function provenance() {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const git = (...args) => {
    try {
      return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
      return 'unknown';
    }
  };
  return {
    headgate: version,
    commit:
      git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--', 'src') === '' ? '' : ' with changes'),
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    date: new Date().toISOString(),
  };
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Rows of cells as a Markdown table with aligned columns, which is readable in a terminal as well. */
export function table(head, rows) {
  const cells = [head, ...rows.map((row) => row.map(String))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const line = (row) =>
    `| ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(' | ')} |`;
  const rule = `|${widths.map((width, i) => `${'-'.repeat(width + 1)}${i === 0 ? '-' : ':'}`).join('|')}|`;
  return [line(head), rule, ...cells.slice(1).map(line)].join('\n');
}

/** Progress goes to stderr, so that stdout is only the report. */
export function progress(text) {
  process.stderr.write(`… ${text}\n`);
}

/** Runs one measurement in a fresh process, where no other has shaped the heap or the type feedback; it prints JSON. */
export function inFreshProcess(file, args = [], nodeFlags = []) {
  const path = new URL(`../${file}`, import.meta.url).pathname;
  const output = execFileSync(process.execPath, [...nodeFlags, path, ...args.map(String)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 26,
  });
  return JSON.parse(output);
}

/** The version of a package that a file of ours would import. */
export function versionOf(name, from = import.meta.url) {
  for (const folder of createRequire(from).resolve.paths(name)) {
    const manifest = join(folder, name, 'package.json');
    if (existsSync(manifest)) return JSON.parse(readFileSync(manifest, 'utf8')).version;
  }
  return 'unknown';
}

/** Where and how the figures were made, as a section ends. */
export function origin({ node, cpu, cores, date, commit }, script) {
  return `${cpu}, ${cores} cores, Node ${node}, commit ${commit}, ${date}. Reproduce: \`npm run build && npm run ${script}\`.`;
}

/** Puts a report in its place in docs/benchmarks.md. */
export function writeSection(name, report) {
  const page = new URL('../../docs/benchmarks.md', import.meta.url);
  const text = readFileSync(page, 'utf8');
  const place = new RegExp(`<!-- ${name} -->.*<!-- /${name} -->`, 's');
  if (!place.test(text)) throw new Error(`docs/benchmarks.md has no place for ${name}`);
  writeFileSync(
    page,
    text.replace(place, () => `<!-- ${name} -->\n${report}<!-- /${name} -->`),
  );
}

export function save(name, result) {
  const folder = new URL('../results/', import.meta.url);
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(result, null, 2)}\n`);
}
