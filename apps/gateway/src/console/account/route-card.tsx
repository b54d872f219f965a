import { useId } from 'preact/hooks';
import type { Windows } from '../api/answers.ts';
import { limitName } from '../parts/format.ts';
import { type RouteWindows, verdictOf } from '../parts/verdict.ts';
import { WindowBar } from '../parts/window-bar.tsx';
import { href } from '../route.ts';
import { may } from '../session.ts';
import { BlockNotice, blockText } from './block-notice.tsx';

type Window = RouteWindows['windows'][number];

/** Which limit of which route an operator wants to change. */
export type OnChange = (route: string, limit: Window['limit']) => void;

const BADGES = { blocked: 'bad', rejects: 'bad', near: 'care', free: 'good', unlimited: '' } as const;

/** The limits of an account on a route, each with its windows. */
export function RouteCard({
  account,
  shown,
  onChange,
  onReset,
  onBlock,
  onUnblock,
}: {
  account: Omit<Windows, 'routes'>;
  shown: RouteWindows;
  onChange: OnChange;
  onReset: () => void;
  onBlock: () => void;
  onUnblock: () => void;
}) {
  const id = useId();
  const { route, lane, windows, blocked, inFlight, groups } = shown;
  const { kind, text } = verdictOf(shown);
  return (
    <section aria-labelledby={id}>
      <div class="row">
        <h3 id={id}>{route}</h3>
        <span class={`badge ${BADGES[kind]}`}>{text}</span>
      </div>
      {blocked?.scope === 'route' && <BlockNotice block={blocked} of={route} onUnblock={onUnblock} />}
      {lane !== null && <p class="soft">Lane {lane}: its share of each limit</p>}
      <InFlight status={inFlight} />
      {windows.length === 0 && inFlight === null && (
        <div class="row">
          <p>{groups.length === 0 ? 'No limit: every request passes.' : 'No limit of the account.'}</p>
          <ChangeButton route={route} limit="route" onChange={onChange} />
        </div>
      )}
      {(['route', 'all-methods'] as const).map((limit) => (
        <Limit
          key={limit}
          account={account}
          route={route}
          windows={windows.filter((each) => each.limit === limit)}
          onChange={onChange}
        />
      ))}
      {groups.map((group) => (
        <GroupLimits key={group.group} of={group} />
      ))}
      {may('operator') && (windows.length > 0 || inFlight !== null) && (
        <div class="actions">
          <button type="button" class="quiet" aria-label={`Reset counters of ${route}…`} onClick={onReset}>
            Reset counters…
          </button>
          <button type="button" class="quiet" aria-label={`Block route ${route}…`} onClick={onBlock}>
            Block route…
          </button>
        </div>
      )}
    </section>
  );
}

function Limit({
  account,
  route,
  windows,
  onChange,
}: {
  account: Omit<Windows, 'routes'>;
  route: string;
  windows: readonly Window[];
  onChange: OnChange;
}) {
  const [first] = windows;
  if (first === undefined) return null;
  return (
    <div class="limit">
      <div class="row">
        <span class="soft">{sourceText(first, account)}</span>
        <ChangeButton route={route} limit={first.limit} onChange={onChange} />
      </div>
      {windows.map((each) => (
        <WindowBar key={`${each.durationMs} ${each.unit}`} window={each} />
      ))}
    </div>
  );
}

/** The limits of a group, which its own page changes. */
function GroupLimits({ of: { group, account, windows, blocked, inFlight } }: { of: RouteWindows['groups'][number] }) {
  return (
    <div class="limit">
      <span class="soft">
        Group {group}: <a href={href('accounts', account)}>{account}</a>
      </span>
      {blocked && <p class="notice bad">{blockText(blocked)}</p>}
      <InFlight status={inFlight} />
      {windows.map((each) => (
        <WindowBar key={`${each.limit} ${each.durationMs} ${each.unit}`} window={each} />
      ))}
    </div>
  );
}

function InFlight({ status }: { status: RouteWindows['inFlight'] }) {
  if (status === null) return null;
  return (
    <p>
      In flight: {status.running} of {status.max}
    </p>
  );
}

/** Opens the limit of the account, with the windows that apply now, wherever they come from. */
function ChangeButton({ route, limit, onChange }: { route: string; limit: Window['limit']; onChange: OnChange }) {
  if (!may('operator')) return null;
  return (
    <button
      type="button"
      class="quiet"
      aria-label={`Change this limit: ${limitName(limit)}, ${route}`}
      onClick={() => onChange(route, limit)}
    >
      Change this limit
    </button>
  );
}

function sourceText({ limit, from, adjusted }: Window, { provider, plan }: Omit<Windows, 'routes'>): string {
  const layer = {
    account: 'the account',
    provider: `the provider ${provider}`,
    plan: `the plan ${plan}`,
    default: 'the default',
    group: 'the limits of the group',
  }[from];
  return `${limitName(limit)}: from ${layer}, ${adjusted ? 'adjusted by an operator' : 'as in the config'}`;
}
