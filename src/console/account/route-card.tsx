import { useId } from 'preact/hooks';
import type { Windows } from '../api/answers.ts';
import { limitName, spanText, windowText } from '../parts/format.ts';
import { type RouteWindows, verdictOf } from '../parts/verdict.ts';
import { WindowBar } from '../parts/window-bar.tsx';
import { href } from '../route.ts';
import { may } from '../session.ts';

type Window = RouteWindows['windows'][number];

const BADGES = { blocked: 'bad', rejects: 'bad', near: 'care', free: 'good', unlimited: '' } as const;

/** The limits of an account on a route, each with its windows. */
export function RouteCard({
  account,
  shown,
  onReset,
}: {
  account: Omit<Windows, 'routes'>;
  shown: RouteWindows;
  onReset: () => void;
}) {
  const id = useId();
  const { route, windows, blocked } = shown;
  const { kind, text } = verdictOf(shown);
  return (
    <section aria-labelledby={id}>
      <div class="row">
        <h3 id={id}>{route}</h3>
        <span class={`badge ${BADGES[kind]}`}>{text}</span>
      </div>
      {blocked && (
        <p class="notice bad">
          Every request is rejected for {spanText(blocked.forMs)} by a block
          {blocked.reason === null ? '.' : `: ${blocked.reason}`}
        </p>
      )}
      {windows.length === 0 && (
        <div class="row">
          <p>No limit: every request passes.</p>
          <ChangeLink account={account.account} route={route} limit="route" windows={[]} />
        </div>
      )}
      {(['route', 'all-methods'] as const).map((limit) => (
        <Limit key={limit} account={account} route={route} windows={windows.filter((each) => each.limit === limit)} />
      ))}
      {may('operator') && windows.length > 0 && (
        <div class="actions">
          <button type="button" class="quiet" aria-label={`Reset counters of ${route}…`} onClick={onReset}>
            Reset counters…
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
}: {
  account: Omit<Windows, 'routes'>;
  route: string;
  windows: readonly Window[];
}) {
  const [first] = windows;
  if (first === undefined) return null;
  return (
    <div class="limit">
      <div class="row">
        <span class="soft">{sourceText(first, account)}</span>
        <ChangeLink account={account.account} route={route} limit={first.limit} windows={windows} />
      </div>
      {windows.map((each) => (
        <WindowBar key={each.durationMs} window={each} />
      ))}
    </div>
  );
}

/** Leads to the limit of the account, with the windows that apply now, wherever they come from. */
function ChangeLink({
  account,
  route,
  limit,
  windows,
}: {
  account: string;
  route: string;
  limit: Window['limit'];
  windows: readonly Window[];
}) {
  if (!may('operator')) return null;
  const now = windows.length === 0 ? undefined : windows.map(windowText).join();
  const of = { account, route: limit === 'route' ? route : undefined, windows: now };
  return (
    <a
      href={href('limits', undefined, { ...of, edit: '1' })}
      aria-label={`Change this limit: ${limitName(limit)}, ${route}`}
    >
      Change this limit
    </a>
  );
}

function sourceText({ limit, from, adjusted }: Window, { provider, plan }: Omit<Windows, 'routes'>): string {
  const layer = {
    account: 'the account',
    provider: `the provider ${provider}`,
    plan: `the plan ${plan}`,
    default: 'the default',
  }[from];
  return `${limitName(limit)}: from ${layer}, ${adjusted ? 'adjusted by an operator' : 'as in the config'}`;
}
