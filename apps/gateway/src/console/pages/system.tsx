import { useState } from 'preact/hooks';
import type { Instance, Status } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { usePolled } from '../api/polled.ts';
import { status } from '../api/status.ts';
import { changeText, countText, numberText, spanText, timeText } from '../parts/format.ts';
import { Json } from '../parts/json.tsx';
import { ErrorNotice } from '../parts/notice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { ProcessTable } from '../parts/process-table.tsx';
import { may } from '../session.ts';
import { DrainDialog } from '../system/drain-dialog.tsx';
import { Keys } from '../system/keys.tsx';

const INSTANCES_EVERY_MS = 3_000;
const CONFIG_EVERY_MS = 30_000;

/** The running process, its config, and the other processes that share its store. */
export function SystemPage() {
  const [isDraining, setDraining] = useState(false);
  const now = status.value;
  const fleet = usePolled('instances', INSTANCES_EVERY_MS, (signal) =>
    ask<{ instances: Instance[] }>('GET', 'v1/instances', { signal }),
  );
  const config = usePolled('config', CONFIG_EVERY_MS, (signal) => ask<unknown>('GET', 'v1/config', { signal }));
  const instances = fleet.value?.instances;
  return (
    <>
      <PageTitle title="System">
        {now && may('admin') && (
          <button type="button" class="danger" onClick={() => setDraining(true)}>
            {now.state === 'draining' ? 'End the draining …' : 'Drain …'}
          </button>
        )}
      </PageTitle>
      {now && (
        <section class="card" aria-labelledby="process">
          <h2 id="process">This gateway</h2>
          <StatusPairs now={now} />
        </section>
      )}
      <section class="card" aria-labelledby="instances">
        <h2 id="instances">Processes</h2>
        <ErrorNotice error={fleet.error} />
        {instances && <ProcessTable instances={instances} />}
      </section>
      <Keys />
      <section class="card" aria-labelledby="config">
        <h2 id="config">Config</h2>
        <p class="soft">With every default, and without its secrets.</p>
        <ErrorNotice error={config.error} />
        {config.value !== undefined && <Json label="Config" text={JSON.stringify(config.value, null, 2)} />}
      </section>
      {now && isDraining && (
        <DrainDialog
          now={now}
          others={instances?.filter(({ self }) => !self).length}
          onClose={() => setDraining(false)}
        />
      )}
    </>
  );
}

function StatusPairs({ now: { version, instance, startedAt, state, store, limits, leases } }: { now: Status }) {
  return (
    <dl class="pairs">
      <dt>State</dt>
      <dd>
        <span class={`badge ${state === 'serving' ? 'good' : 'care'}`}>{state}</span>
      </dd>
      <dt>Version</dt>
      <dd>{version}</dd>
      <dt>Process</dt>
      <dd>{instance}</dd>
      <dt>Started</dt>
      <dd>{timeText(startedAt)}</dd>
      <dt>Store</dt>
      <dd>
        {store.kind}, <span class={`badge ${store.health === 'ok' ? 'good' : 'bad'}`}>{store.health}</span>, breaker{' '}
        {store.breaker}
      </dd>
      {leases && (
        <>
          <dt>Leases</dt>
          <dd>
            {countText(leases.decisions, 'decision')} without a call; {countText(leases.held, 'unit')} charged ahead
            now, {numberText(leases.lost)} lost
          </dd>
        </>
      )}
      <dt>Limits</dt>
      <dd>
        {changeText(limits.revision)}, {SOURCES[limits.source]}
        {limits.ageMs !== null && ` ${spanText(limits.ageMs)} ago`}
        {!limits.durable && '; changes end with the process'}
      </dd>
    </dl>
  );
}

const SOURCES: Readonly<Record<Status['limits']['source'], string>> = {
  store: 'read from the store',
  kept: 'last read from the store',
  file: 'read from the kept file',
  base: 'because the store was never read',
};
