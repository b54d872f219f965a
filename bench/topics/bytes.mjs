// Memory per key: headgate with four windows, its peers with one. Each candidate runs in a fresh process.
import { inFreshProcess } from 'headgate-bench/fresh-process';
import { peerVersions } from 'headgate-bench/peers';
import { table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { CANDIDATES, PEERS } from '../support/memory-candidates.mjs';

const KEY_COUNTS = [100_000, 1_000_000];
const OURS = 'headgate, consumeSync';
const FLAGS = ['--expose-gc', '--max-old-space-size=8192'];
const BYTES_MOST = 150;
/** Candidates that store the same as another one, or nothing of their own. */
const LEFT_OUT = ['floor, awaited', 'headgate, await consume', '@upstash/ratelimit'];
const NAMES = Object.keys(CANDIDATES).filter((name) => !LEFT_OUT.includes(name));

const titleOf = (name) => name.replace(/, (sync|consumeSync)$/, '');

export async function measure({ quick, progress }) {
  const figures = {};
  for (const keyCount of quick ? KEY_COUNTS.slice(0, 1) : KEY_COUNTS) {
    figures[keyCount] = {};
    for (const name of NAMES) {
      progress(`${whole(keyCount)} keys: ${titleOf(name)}`);
      figures[keyCount][name] = inFreshProcess(
        new URL('../support/bytes-worker.mjs', import.meta.url),
        [name, keyCount],
        FLAGS,
      ).bytesPerKey;
    }
  }
  return { versions: peerVersions(PEERS), figures };
}

export function report({ figures }) {
  const keyCounts = Object.keys(figures).map(Number);
  const rows = NAMES.map((name) => [
    name === OURS ? `**${titleOf(name)}**` : titleOf(name),
    CANDIDATES[name].windows,
    ...keyCounts.map((keyCount) => figures[keyCount][name].toFixed(0)),
  ]);
  return {
    title: 'Bytes per key',
    markdown: `
Memory per key, beyond the key’s own string: heap and external memory of a fresh process after a full garbage
collection, minus what the process used before. The floor is a \`Map\` with four plain objects per key.

${table(['bytes per key', 'windows', ...keyCounts.map((keyCount) => `${whole(keyCount)} keys`)], rows)}`,
    targets: keyCounts.flatMap((keyCount) => targets(keyCount, figures[keyCount])),
    chart: {
      title: 'Bytes per key: headgate with four windows, peers with one',
      unit: 'bytes beyond the key’s own string',
      scale: 'linear',
      better: 'less',
      panels: keyCounts.map((keyCount) => ({
        title: `${whole(keyCount)} keys`,
        bars: NAMES.map((name) => ({ label: titleOf(name), value: figures[keyCount][name], kind: kindOf(name) })),
      })),
    },
  };
}

const kindOf = (name) => ({ 'floor, sync': 'floor', [OURS]: 'ours' })[name] ?? 'peer';

function targets(keyCount, bytes) {
  const least = NAMES.filter((name) => kindOf(name) === 'peer').sort((left, right) => bytes[left] - bytes[right])[0];
  const row = (what, most) =>
    targetRow(`${whole(keyCount)} keys: ${what}`, bytes[OURS], atMost(most), (value) => value.toFixed(0));
  return [
    ...row('bytes per key', BYTES_MOST),
    ...row(`bytes of four windows, at most those of one window in ${least}`, Math.floor(bytes[least])),
  ];
}
