import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ACCOUNT_SEARCH, focusAccountSearch, isAccountSearch } from './account/search.ts';
import { status, statusError, useStatus } from './api/status.ts';
import { Banners } from './banners.tsx';
import { Help } from './help.tsx';
import { lazyPage } from './lazy-page.tsx';
import { OfferedToken } from './offered-token.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { ErrorNotice } from './parts/notice.tsx';
import { PageTitle } from './parts/page-title.tsx';
import { goTo, href, route } from './route.ts';
import { caller, endSession, token } from './session.ts';
import { ThemeChoice } from './theme.tsx';

/** The pages, in the order of the menu. */
const PAGES: readonly { readonly page: string; readonly title: string; readonly Page: FunctionComponent }[] = [
  { page: '', title: 'Overview', Page: OverviewPage },
  {
    page: 'accounts',
    title: 'Accounts',
    Page: lazyPage(async () => (await import('./pages/accounts-and-limits.ts')).AccountsPage),
  },
  {
    page: 'limits',
    title: 'Limits',
    Page: lazyPage(async () => (await import('./pages/accounts-and-limits.ts')).LimitsPage),
  },
  { page: 'claims', title: 'Claims', Page: lazyPage(async () => (await import('./pages/claims.tsx')).ClaimsPage) },
  { page: 'live', title: 'Live', Page: lazyPage(async () => (await import('./pages/live.tsx')).LivePage) },
  { page: 'shadow', title: 'Shadow', Page: lazyPage(async () => (await import('./pages/shadow.tsx')).ShadowPage) },
  { page: 'system', title: 'System', Page: lazyPage(async () => (await import('./pages/system.tsx')).SystemPage) },
];

/** The whole console. */
export function App() {
  const used = token.value;
  return used === undefined ? <SignInPage /> : <Session key={used} used={used} />;
}

function Session({ used }: { used: string }) {
  useStatus(used);
  const [isHelping, setHelping] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof Element && event.target.matches('input, textarea, select');
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === '?') setHelping(true);
      if (event.key !== '/') return;
      event.preventDefault();
      if (isAccountSearch(route.value)) focusAccountSearch();
      else goTo(ACCOUNT_SEARCH);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  const shown = PAGES.find(({ page }) => page === route.value.page);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <header>
        <a class="brand" href={href('')}>
          headgate
        </a>
        <nav aria-label="Pages">
          <ul>
            {PAGES.map(({ page, title }) => (
              <li key={page}>
                <a href={href(page)} aria-current={page === route.value.page ? 'page' : undefined}>
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="person">
          {caller.value && (
            <span>
              {caller.value.name} <span class="soft">{caller.value.role}</span>
            </span>
          )}
          <ThemeChoice />
          <button type="button" class="quiet" onClick={() => setHelping(true)}>
            Help
          </button>
          <button type="button" class="quiet" onClick={() => endSession()}>
            Sign out
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <OfferedToken />
        {status.value && <Banners status={status.value} />}
        <ErrorNotice error={statusError.value} />
        {caller.value === undefined ? null : shown === undefined ? <Unknown /> : <shown.Page key={shown.page} />}
      </main>
      {isHelping && <Help onClose={() => setHelping(false)} />}
    </>
  );
}

function Unknown() {
  return (
    <>
      <PageTitle title="No such page" />
      <p>
        The console has no such page. Go to the <a href={href('')}>overview</a>.
      </p>
    </>
  );
}
