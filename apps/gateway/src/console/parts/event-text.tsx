import type { ComponentChildren } from 'preact';
import type { Decision, LimitEntry, StateChange } from '../api/answers.ts';
import type { StreamEvent } from '../api/event-stream.ts';
import { href } from '../route.ts';
import { costsText, numberText, PAUSE_REASON, spanText, timeText, unitsText, windowsText } from './format.ts';
import { targetText } from './target.ts';
import { windowName } from './verdict.ts';
import type { ShownWindow } from './window-bar.tsx';

interface DecisionData extends Omit<Decision, 'trace' | 'blocked' | 'impossible' | 'inFlight' | 'lane' | 'group'> {
  readonly lane?: string;
  readonly group?: string;
  readonly tightest?: Omit<ShownWindow, 'used'>;
  readonly blocked?: { readonly forMs: number; readonly reason?: string };
  readonly inFlight?: Decision['inFlight'];
}
interface ClaimData {
  readonly application: string;
  readonly key: string;
  readonly what: string;
  readonly reason?: string;
}

const OUTCOMES = { accepted: 'good', rejected: 'bad', degraded: 'care' } as const;

const STATES: Readonly<Record<StateChange['state'], string>> = {
  draining: 'lets this gateway drain',
  serving: 'lets this gateway serve again',
  reloaded: 'the config was reloaded',
  shadow_started: 'started shadow limits',
  shadow_ended: 'ended shadow limits',
  windows_reset: 'reset counters',
  account_blocked: 'blocked',
  account_unblocked: 'unblocked',
  account_paused: 'refused a request, so nothing more is sent for now:',
  account_resumed: 'accepted a request, so the pause is over:',
  claim_completed: 'completed a claim by hand',
  claim_released: 'released a claim by hand',
};

/** What a provider's answer does, and no operator. */
const PROVIDER_STATES: ReadonlySet<string> = new Set(['account_paused', 'account_resumed']);

/** An event in words. One that this version does not know is shown as it came. */
export function EventText({
  event: { type, data },
  page,
  onTrace,
}: {
  event: StreamEvent;
  /** The account whose page it is; it need not be named. */
  page: string | undefined;
  onTrace: (requestId: string) => void;
}) {
  const { at } = data as { readonly at?: string };
  return (
    <div class="event">
      <time class="soft">{at && timeText(at)}</time>
      {textOf(type, data, page, onTrace)}
    </div>
  );
}

function textOf(
  type: string,
  data: unknown,
  page: string | undefined,
  onTrace: (requestId: string) => void,
): ComponentChildren {
  switch (type) {
    case 'decision':
      return <DecisionText data={data as DecisionData} page={page} onTrace={onTrace} />;
    case 'claim':
      return <ClaimText data={data as ClaimData} />;
    case 'state':
      return <StateText data={data as StateChange} />;
    case 'limits':
      return <LimitsText data={data as LimitEntry} />;
    default:
      return (
        <span>
          <span class="badge">{type}</span> <code>{JSON.stringify(data)}</code>
        </span>
      );
  }
}

function DecisionText({
  data,
  page,
  onTrace,
}: {
  data: DecisionData;
  page: string | undefined;
  onTrace: (requestId: string) => void;
}) {
  const { req_id, outcome, account, route, lane, group, cost, costs, tightest, blocked, inFlight } = data;
  return (
    <>
      <span>
        <span class={`badge ${OUTCOMES[outcome] ?? ''}`}>{outcome}</span>{' '}
        {account !== page && <a href={href('accounts', account)}>{account}</a>} {route}
        {lane !== undefined && `, lane ${lane}`}
        {group !== undefined && `, by group ${group}`}
        {costs === undefined ? cost > 1 && `, cost ${cost}` : `, cost ${costsText(costs)}`}
        {blocked && (
          <span class="soft">
            {' '}
            {blocked.reason === PAUSE_REASON
              ? `paused by its provider, for ${spanText(blocked.forMs)}`
              : `by a block, for ${spanText(blocked.forMs)}${blocked.reason ? `: ${blocked.reason}` : ''}`}
          </span>
        )}
        {inFlight && (
          <span class="soft">
            {' '}
            because {numberText(inFlight.running)} of {numberText(inFlight.max)} were in flight
          </span>
        )}
        {tightest && !inFlight && (
          <span class="soft">
            {' '}
            {windowName({ ...tightest, used: 0 })}: {unitsText(tightest.remaining, tightest.unit)} left
          </span>
        )}
      </span>
      <button type="button" class="quiet" aria-label={`Trace of ${req_id}`} onClick={() => onTrace(req_id)}>
        Trace
      </button>
    </>
  );
}

function ClaimText({ data: { application, key, what, reason } }: { data: ClaimData }) {
  return (
    <span>
      <span class="badge">claim</span> {what.replaceAll('_', ' ')}
      {reason && `: ${reason.replaceAll('_', ' ')}`}, key{' '}
      <a href={href('claims', undefined, { application, key })}>{key}</a> of {application}
    </span>
  );
}

function StateText({ data: { state, by, account, route } }: { data: StateChange }) {
  return (
    <span>
      <span class="badge care">{PROVIDER_STATES.has(state) ? 'provider' : 'operator'}</span>{' '}
      {by && <strong>{by}</strong>} {STATES[state] ?? state}
      {account && (
        <>
          {' '}
          <a href={href('accounts', account)}>{account}</a>
          {route && ` on ${route}`}
        </>
      )}
    </span>
  );
}

function LimitsText({ data: { version, by, reason, changes = [] } }: { data: Partial<LimitEntry> }) {
  return (
    <span>
      <span class="badge care">limits</span> {by && <strong>{by}</strong>}{' '}
      {by ? 'changed limits' : 'limits were read again'} (change {version}){reason && `: ${reason}`}
      <ul>
        {changes.map((change) => (
          <li key={JSON.stringify(change.target)}>
            {targetText(change.target)}: {textOrConfig(change.old)} → {textOrConfig(change.new)}
          </li>
        ))}
      </ul>
    </span>
  );
}

function textOrConfig(windows: readonly string[] | null): string {
  return windows === null ? 'as in the config' : windowsText(windows);
}
