// Which stage of `headgate serve` uses how much CPU, from a CPU profile of the product itself.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { startHeadgate } from './gateway-candidates.mjs';

/**
 * The stages with their modules, by the start of their path: in `src` of the library, or of the gateway. With a pattern,
 * only functions of such a name. The first that fits counts.
 */
const STAGES = [
  ['key', ['gateway/admission/keys.ts', 'gateway/config/token-digest.ts']],
  ['body and idempotency', ['gateway/body/', 'gateway/admission/body-stage.ts', 'idempotency/', 'core/claim']],
  ['body and idempotency', ['gate/idempotency', 'gate/idempotent', 'gate/recording', 'gate/answer-tape', 'gate/piece']],
  ['body and idempotency', ['http/fingerprint/', 'http/field/', 'http/parse/', 'http/idempotency', 'http/stored']],
  ['body and idempotency', ['stores/memory/claim', 'stores/memory/results', 'stores/memory/scope-claims']],
  ['route and account', ['gateway/admission/', 'gateway/config/']],
  ['log', ['gateway/operations/log', 'node_modules/pino', 'node_modules/sonic-boom']],
  ['metrics', ['gateway/operations/', 'node_modules/prom-client', 'node_modules/tdigest']],
  ['answer', ['gateway/proxy/'], /^#?(on(Response|Head|Data|More|End)|answer\w*)$/],
  [
    'answer',
    [
      'gateway/proxy/answer',
      'gateway/proxy/stored-answer',
      'gateway/exchange/answers',
      'gateway/exchange/cors',
      'http/hop-by-hop',
    ],
  ],
  ['dispatch', ['gateway/proxy/', 'node_modules/undici']],
  ['accept and parse', ['gateway/']],
  ['limit', ['']],
].map(([name, starts, functions]) => ({ name, starts, functions }));
/** The process, and the files of the library that it loads. */
const BUILT = /\/dist\/[^/]+\.cjs$/;
/** Modules of Node, for frames that no module of the bundle has called. */
const NODE_STAGES = [
  ['dispatch', ['node:_http_client']],
  ['accept and parse', ['node:_http_server', 'node:_http_common', 'node:_http_incoming']],
];
const [COLLECTION, REST] = ['garbage collection', 'Node and system calls, not told apart'];
const NOT_WORK = new Set(['(idle)', '(root)']);
/** In the order of a request, as the report has them. */
export const STAGE_NAMES = [
  ...['accept and parse', 'key', 'route and account', 'body and idempotency', 'limit', 'dispatch', 'answer'],
  ...['log', 'metrics', COLLECTION, REST],
];

/**
 * Loads a gateway of its own, with a memory store, under the profiler.
 * @returns by workload, the share of each stage in the CPU; only workloads that were chosen
 */
export async function measureStages({ folder, upstreamPort }, { loads, workloads, warmUp, seconds }) {
  const shares = {};
  for (const { name: workload } of workloads.filter(({ name }) => name === 'small' || name === 'keyed')) {
    const profiles = `${folder}/profile-${workload}`;
    mkdirSync(profiles);
    const gateway = await startHeadgate('memory', {
      folder,
      upstreamPort,
      profile: profiles,
      name: `staged-${workload}`,
    });
    let from;
    try {
      await warmUp(workload, gateway);
      from = nowMicros();
      await loads.load({ workload, port: gateway.port, seconds });
    } finally {
      await gateway.stop();
    }
    const [file] = readdirSync(profiles);
    const profile = JSON.parse(readFileSync(`${profiles}/${file}`, 'utf8'));
    shares[workload] = stageShares(profile, (url) => readFileSync(new URL(url), 'utf8'), {
      from,
      to: from + seconds * 1e6,
    });
  }
  return shares;
}

/** The monotonic clock of the system, which the profiler has too. */
const nowMicros = () => Number(process.hrtime.bigint() / 1_000n);

/**
 * @param profile a `.cpuprofile` as V8 writes it
 * @param textOf returns the text of a built file, in which a comment names the module of the lines below it
 * @param span `{ from, to }` in microseconds: only samples of this time count
 * @returns the share of each stage, from 0 to 1. A sample belongs to the innermost function of a built file that has
 *   called what was running.
 */
export function stageShares({ nodes, samples, timeDeltas, startTime }, textOf, { from, to }) {
  const moduleAt = createModuleLookup(textOf);
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const stages = new Map(nodes.map(({ id }) => [id, stageOf(pathOf(id, parents, frames), moduleAt)]));
  const micros = new Map();
  let now = startTime;
  for (const [i, id] of samples.entries()) {
    now += timeDeltas[i];
    const isCounted = now >= from && now <= to && !NOT_WORK.has(frames.get(id).functionName);
    // A sample lasts until the next one.
    if (isCounted) micros.set(stages.get(id), (micros.get(stages.get(id)) ?? 0) + (timeDeltas[i + 1] ?? 0));
  }
  const total = [...micros.values()].reduce((sum, value) => sum + value, 0);
  return Object.fromEntries(STAGE_NAMES.map((name) => [name, total === 0 ? 0 : (micros.get(name) ?? 0) / total]));
}

/** The frames from the innermost one outwards. */
function pathOf(id, parents, frames) {
  const path = [];
  for (let at = id; at !== undefined; at = parents.get(at)) path.push(frames.get(at));
  return path;
}

function stageOf(path, moduleAt) {
  if (path[0].functionName === '(garbage collector)') return COLLECTION;
  for (const { url, lineNumber, functionName } of path) {
    const module = BUILT.test(url) ? moduleAt(url, lineNumber) : undefined;
    const stage = module && stageOfModule(module, functionName);
    if (stage !== undefined) return stage;
  }
  for (const [name, modules] of NODE_STAGES) {
    if (path.some(({ url }) => modules.includes(url))) return name;
  }
  return REST;
}

function stageOfModule(module, functionName) {
  const fits = ({ starts, functions }) =>
    starts.some((start) => module.startsWith(start)) && (functions === undefined || functions.test(functionName));
  return STAGES.find(fits)?.name;
}

/**
 * @param textOf returns the text of a built file
 * @returns a function that returns the module of a line of a built file, counted from 0
 */
function createModuleLookup(textOf) {
  const files = new Map();
  return (url, line) => {
    if (!files.has(url)) files.set(url, modulesIn(textOf(url), url.endsWith('headgate.cjs') ? 'gateway/' : ''));
    return files.get(url)[line];
  };
}

/** The module of each line. */
function modulesIn(text, prefix) {
  let module;
  return text.split('\n').map((line) => {
    const [, source, dependency] = /^\/\/ (?:src\/(.*)|(?:.*\/)?(node_modules\/.*))/.exec(line) ?? [];
    if (source !== undefined || dependency !== undefined) module = dependency ?? prefix + source;
    return module;
  });
}
