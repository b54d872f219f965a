import { useEffect, useState } from 'preact/hooks';
import { focusAccountSearch } from '../account/search.ts';
import type { ListedAccount } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { ONCE, usePolled } from '../api/polled.ts';
import { Field } from '../parts/field.tsx';
import { ErrorNotice } from '../parts/notice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { Pager, usePages } from '../parts/pager.tsx';
import { Wide } from '../parts/wide.tsx';
import { goTo, href, route } from '../route.ts';
import { AccountPage } from './account.tsx';

const PER_PAGE = 50;

/** The accounts of the config, or one of them. */
export function AccountsPage() {
  const { name } = route.value;
  return name === undefined ? <AccountSearch /> : <AccountPage key={name} account={name} />;
}

interface AccountList {
  readonly accounts: readonly ListedAccount[];
  readonly next: string | null;
}

function AccountSearch() {
  const [prefix, setPrefix] = useState('');
  const isSearch = route.value.query.has('search');
  // The heading takes the focus first.
  useEffect(() => {
    if (isSearch) focusAccountSearch();
  }, [isSearch]);
  const pages = usePages(prefix);
  const query = { prefix, limit: PER_PAGE, cursor: pages.cursor };
  const { value, error } = usePolled(JSON.stringify(query), ONCE, (signal) =>
    ask<AccountList>('GET', 'v1/accounts', { query, signal }),
  );
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    // Until the list arrives, the typed or pasted text is taken for the whole id.
    const found = value?.accounts ?? [{ id: prefix }];
    const chosen = found.find(({ id }) => id === prefix) ?? (found.length === 1 ? found[0] : undefined);
    if (chosen?.id) goTo(href('accounts', chosen.id));
  };
  return (
    <>
      <PageTitle title="Accounts" />
      <form onSubmit={submit}>
        <Field
          label="Account"
          type="search"
          autocomplete="off"
          hint="An id or its beginning. Enter opens the only account that is found."
          value={prefix}
          onValue={(typed) => setPrefix(typed.trim())}
        />
      </form>
      <ErrorNotice error={error} />
      {value?.accounts.length === 0 && <Nothing prefix={prefix} />}
      {value !== undefined && value.accounts.length > 0 && <AccountTable accounts={value.accounts} />}
      <Pager pages={pages} next={value?.next} />
    </>
  );
}

function Nothing({ prefix }: { prefix: string }) {
  if (prefix === '') return <p>The config has no accounts.</p>;
  return (
    <p>
      No account of the config begins with <code>{prefix}</code>. Upper and lower case differ.
    </p>
  );
}

function AccountTable({ accounts }: { accounts: readonly ListedAccount[] }) {
  return (
    <Wide label="Accounts">
      <table>
        <thead>
          <tr>
            <th>Account</th>
            <th>Application</th>
            <th>Provider</th>
            <th>Plan</th>
          </tr>
        </thead>
        <tbody>
          {accounts.map(({ id, application, provider, plan }) => (
            <tr key={id}>
              <td>
                <a href={href('accounts', id)}>{id}</a>
              </td>
              <td>{application}</td>
              <td>{provider ?? '–'}</td>
              <td>{plan ?? '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
