import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import { newId } from '../../domain/ids.ts';
import { MAX_KEY_YEARS } from '../../domain/key-expiry.ts';
import type { ApplicationAction } from '../../domain/member-roles.ts';
import type { ListedKey } from '../../keys/keys.ts';
import type { Scope } from '../../scopes/scopes.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import type { Listed } from '../list-page.ts';
import { applicationPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { SelectField, TextField } from './fields.tsx';
import { AskedButton, FaultSummary, FormOf } from './forms.tsx';
import { Day, Done, Older, Time } from './parts.tsx';

type KeyKind = 'service' | 'account';

interface ApplicationPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly may: (action: ApplicationAction) => boolean;
  /** Undefined: the person may not see them. */
  readonly serviceKeys: Listed<ListedKey> | undefined;
  readonly accountKeys: Listed<ListedKey>;
  readonly scopes: readonly Scope[];
  /** A form that was sent with faults. */
  readonly faulty: { readonly kind: KeyKind; readonly inputs: Inputs } | undefined;
  readonly nowMs: number;
  /** Whether a key was just revoked. */
  readonly isRevoked: boolean;
}

/** An application with its keys. */
export function ApplicationPage(props: ApplicationPageProps): JSX.Element {
  const { here, application, may, serviceKeys, accountKeys, faulty, isRevoked } = props;
  return (
    <ApplicationLayout
      here={here}
      application={application}
      title={application.name}
      part="keys"
      faulty={faulty !== undefined}
    >
      <FaultSummary faults={faulty?.inputs.faults ?? []} prefix={`${faulty?.kind}-`} />
      <Done text={isRevoked ? 'The key is revoked. Requests with it are refused.' : undefined} />
      <h1>{application.name}</h1>
      <p class="soft">
        <code>{application.id}</code>, created on <Day at={application.created_at} />
      </p>
      {serviceKeys === undefined ? null : (
        <section aria-labelledby="service-keys">
          <h2 id="service-keys">Service keys</h2>
          <p class="soft">
            A service key manages the whole application: accounts, scopes, webhooks, limits and account keys.
          </p>
          <KeyList {...props} kind="service" list={serviceKeys} canManage={may('manage service keys')} />
          {may('manage service keys') ? <KeyForm {...props} kind="service" /> : null}
        </section>
      )}
      <section aria-labelledby="account-keys">
        <h2 id="account-keys">Account keys</h2>
        <p class="soft">An account key sends email and links mailboxes: of the whole application, or of one scope.</p>
        <KeyList {...props} kind="account" list={accountKeys} canManage={may('manage account keys')} />
        {may('manage account keys') ? (
          <KeyForm {...props} kind="account" />
        ) : (
          <p class="soft">Your role may only look at the keys of a production application.</p>
        )}
      </section>
    </ApplicationLayout>
  );
}

interface KeyListProps extends ApplicationPageProps {
  readonly kind: KeyKind;
  readonly list: Listed<ListedKey>;
  readonly canManage: boolean;
}

function KeyList({ here, application, scopes, kind, list, canManage, nowMs }: KeyListProps): JSX.Element {
  if (list.rows.length === 0) return <p class="empty">There is no {kind} key.</p>;
  const accessOf = ({ role, scope_id }: ListedKey): string =>
    role === 'scoped' ? `scope ${scopes.find(({ id }) => id === scope_id)?.name ?? scope_id}` : 'whole application';
  return (
    <>
      <ul class="rows">
        {list.rows.map((key) => (
          <li key={key.id}>
            <div class="what">
              <span class="title">{key.name}</span>
              {key.expires_at.getTime() <= nowMs ? <span class="badge expired">Expired</span> : null}
            </div>
            <p class="soft">
              <code>{key.prefix}…</code>
              {kind === 'account' ? `, ${accessOf(key)}` : ''}, expires on <Day at={key.expires_at} />,{' '}
              {key.last_used_at === null ? (
                'never used'
              ) : (
                <>
                  last used <Time at={key.last_used_at} />
                </>
              )}
            </p>
            {canManage ? (
              <AskedButton
                {...here.form(applicationPath(application.id, `${kind}-keys/${key.id}/revoke`))}
                label="Revoke"
                subject={key.name}
                consequence="Requests with this key are refused at once. It cannot be undone."
              />
            ) : null}
          </li>
        ))}
      </ul>
      <Older href={list.next} label={`Older ${kind} keys`} />
    </>
  );
}

const YEAR_MS = 31_536_000_000;

/** The form for a new key. A page with several forms gives their inputs different ids. */
function KeyForm({
  here,
  application,
  scopes,
  kind,
  faulty,
  nowMs,
}: ApplicationPageProps & { kind: KeyKind }): JSX.Element {
  const inputs = faulty?.kind === kind ? faulty.inputs : undefined;
  const faults = inputs?.faults ?? [];
  const common = { prefix: `${kind}-`, faults };
  const inAYear = new Date(nowMs + YEAR_MS).toISOString().slice(0, 10);
  return (
    <details class="panel" open={inputs !== undefined}>
      <summary>Create {kind === 'service' ? 'a service key' : 'an account key'}</summary>
      <div class="inside">
        <FormOf {...here.form(applicationPath(application.id, `${kind}-keys`), newId('key', nowMs))}>
          <TextField
            {...common}
            name="name"
            label="Name"
            hint="Where the key is used, for example."
            value={inputs?.raw('name')}
          />
          <TextField
            {...common}
            name="expires_on"
            label="Last day"
            type="date"
            hint={`At most ${MAX_KEY_YEARS} years away. A key cannot be extended.`}
            value={inputs?.raw('expires_on') ?? inAYear}
          />
          {kind === 'account' ? (
            <SelectField
              {...common}
              name="access"
              label="Accounts"
              value={inputs?.raw('access') ?? 'global'}
              options={[
                { value: 'global', label: 'All accounts of the application' },
                ...scopes
                  .filter(({ status }) => status === 'active')
                  .map(({ id, name }) => ({ value: id, label: `Only the scope ${name}` })),
              ]}
            />
          ) : null}
          <button type="submit">Create the key</button>
        </FormOf>
      </div>
    </details>
  );
}
