import { useEffect, useState } from 'preact/hooks';
import { AccountEvents } from '../account/account-events.tsx';
import { AdjustedLimits } from '../account/adjusted-limits.tsx';
import { BlockDialog, type Blocking, UnblockDialog } from '../account/block-dialog.tsx';
import { BlockNotice } from '../account/block-notice.tsx';
import { ExplainForm } from '../account/explain-form.tsx';
import { ResetDialog } from '../account/reset-dialog.tsx';
import { type OnChange, RouteCard } from '../account/route-card.tsx';
import type { Windows } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { usePolled } from '../api/polled.ts';
import { presetsOf } from '../limits/draft.ts';
import { LimitDialog, type OpenedLimit } from '../limits/limit-dialog.tsx';
import { countText, windowText } from '../parts/format.ts';
import { ErrorNotice, Notice } from '../parts/notice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { verdictOf } from '../parts/verdict.ts';
import { href, replaceWith, route } from '../route.ts';
import { may } from '../session.ts';

const EVERY_MS = 1_000;

/**
 * An account: how full its windows are, the decision for a next request, and past events. An address with `adjust`
 * opens the dialog of a limit: `#/accounts/acc_1?adjust=all-methods&route=POST%20/api/v1/emails`.
 */
export function AccountPage({ account }: { account: string }) {
  const { value, error, refresh } = usePolled(account, EVERY_MS, (signal) =>
    ask<Windows>('GET', 'v1/windows', { query: { account }, signal }),
  );
  /** The route whose counters the dialog resets; null: every route. */
  const [resetting, setResetting] = useState<string | null | undefined>();
  /** The block that a dialog sets or lifts. */
  const [blocking, setBlocking] = useState<{ readonly what: Blocking; readonly isLifted: boolean }>();
  const [done, setDone] = useState('');
  const [opened, setOpened] = useState<OpenedLimit>();
  const [changes, setChanges] = useState(0);
  const change: OnChange = (name, limit) => {
    const shown = value?.routes.find((each) => each.route === name)?.windows.filter((each) => each.limit === limit);
    if (shown === undefined) return;
    // On a route with a lane, the limit is changed, of which the lane has a share.
    const windows = shown.map((window) => ({ ...window, max: window.limitMax ?? window.max }));
    setOpened({
      target: { account, ...(limit === 'route' && { route: name }) },
      beginning: windows.length === 0 ? 'now' : windows.map(windowText),
      presets: presetsOf(windows),
    });
  };
  const block = (of?: string): void => setBlocking({ what: { account, route: of }, isLifted: false });
  const unblock = (of?: string): void => setBlocking({ what: { account, route: of }, isLifted: true });
  const onDone = (text: string): void => {
    setDone(text);
    refresh();
  };
  const { query } = route.value;
  const isRead = value !== undefined;
  useEffect(() => {
    const limit = query.get('adjust');
    if (limit === null || !isRead) return;
    // The address is without the dialog from now on, so that Back does not open it again.
    replaceWith(href('accounts', account));
    if (may('operator')) change(query.get('route') ?? '', limit === 'route' ? limit : 'all-methods');
  }, [query, isRead]);
  return (
    <>
      <PageTitle title={account}>
        <a href={href('accounts')}>All accounts</a>
      </PageTitle>
      <ErrorNotice error={error} />
      {done !== '' && <Notice kind="good">{done}</Notice>}
      {value && (
        <>
          <p class="soft">
            Provider {value.provider ?? 'not set'}, plan {value.plan ?? 'not set'}
          </p>
          {value.blocked && <BlockNotice block={value.blocked} of={account} onUnblock={() => unblock()} />}
          <Summary routes={value.routes} onChange={change} />
          <AdjustedLimits
            account={account}
            changes={changes}
            onPutBack={(target) => setOpened({ target, beginning: 'reset' })}
          />
          <section aria-labelledby="windows">
            <div class="row">
              <h2 id="windows">Windows</h2>
              {may('operator') && value.routes.length > 0 && (
                <div class="actions">
                  <button type="button" class="danger" onClick={() => block()}>
                    Block account…
                  </button>
                  <button type="button" class="danger" onClick={() => setResetting(null)}>
                    Reset all counters…
                  </button>
                </div>
              )}
            </div>
            <div class="columns">
              {value.routes.map((each) => (
                <RouteCard
                  key={each.route}
                  account={value}
                  shown={each}
                  onChange={change}
                  onReset={() => setResetting(each.route)}
                  onBlock={() => block(each.route)}
                  onUnblock={() => unblock(each.route)}
                />
              ))}
            </div>
          </section>
          {value.routes.length > 0 && <ExplainForm account={account} routes={value.routes.map(({ route }) => route)} />}
          <AccountEvents account={account} />
        </>
      )}
      {opened && (
        <LimitDialog
          key={JSON.stringify(opened)}
          {...opened}
          onClose={() => setOpened(undefined)}
          onChanged={() => {
            setChanges((last) => last + 1);
            refresh();
          }}
        />
      )}
      {value && resetting !== undefined && (
        <ResetDialog
          account={account}
          routes={value.routes.filter(({ route }) => resetting === null || resetting === route)}
          route={resetting ?? undefined}
          onDone={onDone}
          onClose={() => setResetting(undefined)}
        />
      )}
      {value && blocking && !blocking.isLifted && (
        <BlockDialog
          {...blocking.what}
          unlimited={blocking.what.route === undefined ? unlimitedIn(value) : []}
          isBlocked={isBlocked(value, blocking.what.route)}
          onDone={onDone}
          onClose={() => setBlocking(undefined)}
        />
      )}
      {blocking?.isLifted && (
        <UnblockDialog {...blocking.what} onDone={onDone} onClose={() => setBlocking(undefined)} />
      )}
    </>
  );
}

/** The routes on which the account is not limited. */
function unlimitedIn({ routes }: Windows): string[] {
  return routes.filter(({ windows, inFlight }) => windows.length === 0 && inFlight === null).map(({ route }) => route);
}

/** Whether the account, or one of its routes, is blocked itself. */
function isBlocked({ blocked, routes }: Windows, of: string | undefined): boolean {
  if (of === undefined) return blocked !== null;
  return routes.some(({ route, blocked }) => route === of && blocked?.scope === 'route');
}

/**
 * The first facts that an operator needs: the window that rejects, and when there is room. They change each second, so
 * they are not read out.
 */
function Summary({ routes, onChange }: Pick<Windows, 'routes'> & { onChange: OnChange }) {
  const rejecting = routes.flatMap((each) => {
    const { by, text, limit } = verdictOf(each);
    return by === undefined ? [] : [{ route: each.route, by, text, limit }];
  });
  if (routes.length === 0) return <p>The config limits no route, so nothing is counted.</p>;
  if (rejecting.length === 0)
    return (
      <p class="notice good">Nothing is rejected now by limits of the account and its groups: every route has room.</p>
    );
  return (
    <div class="notice bad">
      <p>
        <strong>
          {countText(rejecting.length, 'route')} of {routes.length} {rejecting.length === 1 ? 'rejects' : 'reject'}{' '}
          requests now
        </strong>
      </p>
      <ul>
        {rejecting.map(({ route, by, text, limit }) => (
          <li key={route} class="row">
            <span>
              {route}: {text} ({by})
            </span>
            {limit && may('operator') && (
              <button type="button" aria-label={`Adjust ${route}`} onClick={() => onChange(route, limit)}>
                Adjust
              </button>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
