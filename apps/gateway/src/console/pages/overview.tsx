import { useEffect, useState } from 'preact/hooks';
import type { Instance, Second, Top } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { askFleet } from '../api/fleet.ts';
import { usePolled } from '../api/polled.ts';
import { status } from '../api/status.ts';
import { changeText, countText, limitName, numberText, processesText, timeText } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { ProcessTable } from '../parts/process-table.tsx';
import { TimeChart } from '../parts/time-chart.tsx';
import { WindowBar } from '../parts/window-bar.tsx';
import { href } from '../route.ts';
import { may } from '../session.ts';

const SERIES_SECONDS = 899;
const SERIES_EVERY_MS = 5_000;
const LISTS_EVERY_MS = 3_000;
const SPAN_MS = 5_000;
const TOP = 10;

/** Outcomes of requests, from the bottom of the chart to its top. */
const OUTCOMES = [
  ['accepted', 'accepted'],
  ['unlimited', 'without a limit'],
  ['replayed', 'replayed'],
  ['degraded', 'degraded'],
  ['rejected', 'rejected'],
  ['refused', 'refused'],
  ['provider_rejected', 'rejected by the provider'],
] as const;
type Outcome = (typeof OUTCOMES)[number][0];

/** Label of a figure that covers only this gateway. */
const HERE = 'this gateway';

/** Current traffic, and problems that need a look. */
export function OverviewPage() {
  const { value: instances, error: instancesError } = usePolled('instances', LISTS_EVERY_MS, (signal) =>
    ask<{ instances: Instance[] }>('GET', 'v1/instances', { signal }),
  );
  return (
    <>
      <PageTitle title="Overview" />
      <Figures instances={instances?.instances} />
      <div class="columns first">
        <TopAccounts by="rejected" title="Most rejected" nobody="Nobody was rejected in the last minute." />
        <TopAccounts by="near" title="Nearly full" nobody="No account was above 80 % of a window in the last minute." />
      </div>
      <Charts />
      <section aria-labelledby="instances">
        <h2 id="instances">Processes</h2>
        <ErrorNotice error={instancesError} />
        {instances && <ProcessTable instances={instances.instances} />}
      </section>
    </>
  );
}

function Figures({ instances }: { instances: readonly Instance[] | undefined }) {
  const now = status.value;
  if (now === undefined) return null;
  const { perSecond, store, limits, claims } = now;
  const obeying = instances?.filter(({ revision }) => revision === limits.revision).length;
  return (
    <dl class="figures">
      <Figure name="Decisions per second" {...decisionsOf(instances ?? [])} />
      <Figure name="Accepted per second" value={numberText(perSecond.accepted)} more={HERE} />
      <Figure name="Rejected per second" value={numberText(perSecond.rejected)} more={HERE} />
      <Figure
        name="Store"
        value={store.health === 'ok' ? 'ok' : 'degraded'}
        more={`${store.kind}, breaker ${store.breaker}; ${HERE}`}
      />
      <Figure
        name="Limits"
        value={changeText(limits.revision)}
        more={instances && `${obeying} of ${instances.length} processes obey it`}
      />
      <Figure
        name="Orphans met"
        value={numberText(claims.orphansMet)}
        more={`${claims.inFlight} claims under way; ${HERE}`}
      />
    </dl>
  );
}

/** The decisions that every process reports. */
function decisionsOf(instances: readonly Instance[]) {
  const said = instances.flatMap(({ decisionsPerSecond }) => decisionsPerSecond ?? []);
  return { value: numberText(sum(said)), more: processesText({ counted: said.length, of: instances.length }) };
}

function Figure({ name, value, more }: { name: string; value: string; more?: string | undefined }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <strong>{value}</strong>
        {more && <span class="soft">{more}</span>}
      </dd>
    </div>
  );
}

function Charts() {
  const { seconds, error } = useSeries();
  if (seconds.length === 0) return <ErrorNotice error={error} />;
  const spans = spansOf(seconds);
  const times = spans.map(([first]) => Date.parse((first as Second).at) / 1_000);
  const total = (name: Outcome): number => sum(seconds.map((each) => each[name]));
  const slowest = (name: 'storeP50Ms' | 'storeP99Ms') =>
    spans.map((each) => Math.max(...each.map((second) => second[name] ?? Number.NEGATIVE_INFINITY))).map(orNull);
  const [accepted, rejected, ms] = [
    total('accepted'),
    total('rejected'),
    Math.max(0, ...slowest('storeP99Ms').map(Number)),
  ];
  return (
    <section aria-label="Last 15 minutes" class="columns">
      <TimeChart
        title="Requests per second of this gateway"
        sentence={`In the last 15 minutes, at this gateway, ${numberText(accepted)} requests were accepted and ${numberText(rejected)} rejected.`}
        times={times}
        lines={OUTCOMES.map(([name, text]) => ({
          name: text,
          color: `outcome-${name}`,
          values: spans.map((each) => sum(each.map((second) => second[name])) / each.length),
        }))}
        stacked
      />
      <TimeChart
        title="Calls of the store by this gateway, in ms"
        sentence={`In the last 15 minutes, at this gateway, in each second 99 of 100 calls of the store took at most ${numberText(ms)} ms.`}
        times={times}
        lines={[
          { name: 'half of them', color: 'store-p50', values: slowest('storeP50Ms') },
          { name: '99 of 100', color: 'store-p99', values: slowest('storeP99Ms') },
        ]}
      />
      <ErrorNotice error={error} />
    </section>
  );
}

/** Groups of five seconds, because the chart's width allows about as many points. */
function spansOf(seconds: readonly Second[]): Second[][] {
  const spans = new Map<number, Second[]>();
  for (const second of seconds) {
    const span = Math.floor(Date.parse(second.at) / SPAN_MS);
    const known = spans.get(span);
    if (known === undefined) spans.set(span, [second]);
    else known.push(second);
  }
  return [...spans.values()];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function orNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** The seconds of the last 15 minutes. Only new seconds are asked for. */
function useSeries() {
  const [seconds, setSeconds] = useState<readonly Second[]>([]);
  const last = seconds.at(-1)?.at;
  const { value, error } = usePolled('series', SERIES_EVERY_MS, async (signal) => {
    const missing = last === undefined ? SERIES_SECONDS : Math.ceil((Date.now() - Date.parse(last)) / 1_000) + 5;
    const query = { seconds: Math.min(SERIES_SECONDS, Math.max(1, missing)) };
    return (await ask<{ seconds: Second[] }>('GET', 'v1/series', { query, signal })).seconds;
  });
  useEffect(() => {
    if (value === undefined) return;
    const first = value[0]?.at ?? '';
    setSeconds((known) => [...known.filter(({ at }) => at < first), ...value].slice(-SERIES_SECONDS));
  }, [value]);
  return { seconds, error };
}

/** The current top accounts. Earlier ones are named beneath: their trouble may be over. */
function TopAccounts({ by, title, nobody }: { by: Top['by']; title: string; nobody: string }) {
  const { value, error } = usePolled(by, LISTS_EVERY_MS, (signal) =>
    askFleet<Top>('v1/top', { by, limit: TOP }, signal),
  );
  const id = `top-${by}`;
  const what = by === 'near' ? 'request' : 'time';
  const of = (accounts: Top['accounts'], isNow: boolean) =>
    accounts.filter(({ lastMinute }) => lastMinute > 0 === isNow);
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <ErrorNotice error={error} />
      {value && (
        <>
          <p class="soft">In the last minute, {value.processes ? processesText(value.processes) : HERE}</p>
          <NowList accounts={of(value.accounts, true)} what={what} nobody={nobody} since={value.since} />
          <BeforeList accounts={of(value.accounts, false)} what={what} since={value.since} />
        </>
      )}
    </section>
  );
}

interface Listed {
  readonly accounts: Top['accounts'];
  /** Noun after each count. */
  readonly what: 'request' | 'time';
  readonly since: string;
}

function NowList({ accounts, what, since, nobody }: Listed & { nobody: string }) {
  if (accounts.length === 0) return <p>{nobody}</p>;
  return (
    <ol class="top">
      {accounts.map(({ account, count, lastMinute, route, tightest }) => (
        <li key={account}>
          <div class="row">
            <a href={href('accounts', account)}>{account}</a>
            <span class="actions">
              {countText(lastMinute, what)}
              {what === 'time' && tightest && may('operator') && (
                <a
                  class="button quiet"
                  aria-label={`Adjust ${account}: ${limitName(tightest.limit)}, ${route}`}
                  href={href('accounts', account, { adjust: tightest.limit, route })}
                >
                  Adjust
                </a>
              )}
            </span>
          </div>
          <div class="row soft">
            <span>{route}</span>
            <span>
              {numberText(count)} since {timeText(since)}
            </span>
          </div>
          {tightest && <WindowBar window={tightest} isPast />}
        </li>
      ))}
    </ol>
  );
}

function BeforeList({ accounts, what, since }: Listed) {
  if (accounts.length === 0) return null;
  return (
    <>
      <h3 class="soft">Before, since {timeText(since)}</h3>
      <ol>
        {accounts.map(({ account, count }) => (
          <li key={account} class="row soft">
            <a href={href('accounts', account)}>{account}</a>
            {countText(count, what)}
          </li>
        ))}
      </ol>
    </>
  );
}
