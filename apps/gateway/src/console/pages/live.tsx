import { useState } from 'preact/hooks';
import { useLiveEvents } from '../api/live-events.ts';
import { Boxes } from '../parts/boxes.tsx';
import { EventList, StreamState } from '../parts/events.tsx';
import { Choice, Field } from '../parts/field.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { TraceDialog } from '../parts/trace-dialog.tsx';
import { goTo, href, route } from '../route.ts';

const MOST = 200;

const TYPES = [
  ['decision', 'Decisions'],
  ['limits', 'Changes of limits'],
  ['claim', 'Claims'],
  ['state', 'What operators do'],
] as const;
type Type = (typeof TYPES)[number][0];
const ALL = TYPES.map(([type]) => type);

const OUTCOMES = [
  ['', 'any'],
  ['accepted', 'accepted'],
  ['rejected', 'rejected'],
  ['degraded', 'degraded'],
] as const;

const SAMPLES = [
  ['', 'every one'],
  ['0.1', '1 of 10'],
  ['0.01', '1 of 100'],
  ['0.001', '1 of 1,000'],
] as const;

/** The filters in the page's address. An empty one is left out. */
interface Filters {
  readonly types: readonly Type[];
  readonly account: string;
  readonly route: string;
  readonly outcome: string;
  readonly sample: string;
}

/** Shows events as they happen. */
export function LivePage() {
  const { query } = route.value;
  const filters = filtersIn(query);
  // Another link to this page sets other filters, and so needs another form.
  return (
    <>
      <PageTitle title="Live" />
      <LookUp />
      <FilterForm key={query.toString()} filters={filters} />
      <Stream filters={filters} />
    </>
  );
}

function LookUp() {
  const [requestId, setRequestId] = useState('');
  const [traced, setTraced] = useState<string>();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setTraced(requestId.trim());
  };
  return (
    <section class="card" aria-labelledby="look-up">
      <h2 id="look-up">One request</h2>
      <form class="inline" onSubmit={submit}>
        <Field label="req_id" autocomplete="off" required value={requestId} onValue={setRequestId} />
        <button type="submit">Look up</button>
      </form>
      <p class="soft">The x-request-id of its answer. This gateway remembers the last 1,000 decisions.</p>
      {traced !== undefined && <TraceDialog requestId={traced} onClose={() => setTraced(undefined)} />}
    </section>
  );
}

function FilterForm({ filters }: { filters: Filters }) {
  const [chosen, setChosen] = useState(filters);
  const set = (change: Partial<Filters>): void => setChosen({ ...chosen, ...change });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    goTo(href('live', undefined, given(chosen)));
  };
  return (
    <section class="card" aria-labelledby="filters">
      <h2 id="filters">Which events</h2>
      <form onSubmit={submit}>
        <Boxes label="Types" options={TYPES} chosen={chosen.types} onChosen={(types) => set({ types })} />
        <div class="fields">
          <Field label="Account" autocomplete="off" value={chosen.account} onValue={(account) => set({ account })} />
          <Field
            label="Route"
            autocomplete="off"
            placeholder="POST /api/v1/emails"
            value={chosen.route}
            onValue={(name) => set({ route: name })}
          />
          <Choice label="Outcome" value={chosen.outcome} options={OUTCOMES} onValue={(outcome) => set({ outcome })} />
          <Choice label="Decisions" value={chosen.sample} options={SAMPLES} onValue={(sample) => set({ sample })} />
        </div>
        <p class="soft">With an account, a route or an outcome, only decisions are shown. No type means every type.</p>
        <div class="actions">
          <button type="submit">Show</button>
          <a class="button quiet" href={href('live')}>
            All events
          </a>
        </div>
      </form>
    </section>
  );
}

function Stream({ filters }: { filters: Filters }) {
  const live = useLiveEvents(given(filters), MOST);
  return (
    <section class="card" aria-labelledby="stream">
      <h2 id="stream">Events of this gateway</h2>
      <StreamState live={live} />
      <EventList live={live} label="Events" nothing="Nothing that fits has happened." />
      {live.events.length === MOST && <p class="soft">Only the last {MOST} events are shown.</p>}
    </section>
  );
}

function filtersIn(query: URLSearchParams): Filters {
  const names = query.get('types')?.split(',');
  return {
    types: names === undefined ? ALL : ALL.filter((type) => names.includes(type)),
    account: query.get('account') ?? '',
    route: query.get('route') ?? '',
    outcome: query.get('outcome') ?? '',
    sample: query.get('sample') ?? '',
  };
}

/** The filters that are not empty. No type at all would show nothing, so it means every type. */
function given({ types, ...texts }: Filters): Record<string, string> {
  const isAll = types.length === ALL.length || types.length === 0;
  return {
    ...(!isAll && { types: types.join() }),
    ...Object.fromEntries(Object.entries(texts).flatMap(([name, text]) => (text === '' ? [] : [[name, text]]))),
  };
}
