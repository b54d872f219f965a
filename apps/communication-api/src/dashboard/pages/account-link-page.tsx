import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import { newId } from '../../domain/ids.ts';
import type { FaultyForm } from '../faulty-form.ts';
import type { Here } from '../here.ts';
import { accountPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { SelectField, TextField } from './fields.tsx';
import { FormOf } from './forms.tsx';
import { Time } from './parts.tsx';

/** The beginning of the ids of the form's inputs. */
export const LINK_FORM = 'link';

/** How long a link may be used, in hours. */
export const LIFETIMES = ['1', '24', '168'] as const;
const LIFETIME_LABELS = { '1': '1 hour', '24': '1 day', '168': '7 days' };

interface ReconnectFormProps {
  readonly here: Here;
  readonly application: Application;
  readonly account: Account;
  /** Hosts of the application that a link may use. */
  readonly hosts: readonly string[];
  readonly faulty: FaultyForm | undefined;
  readonly nowMs: number;
}

/** The form for a link by which the user of an account reconnects it. */
export function ReconnectForm({ here, application, account, hosts, faulty, nowMs }: ReconnectFormProps): JSX.Element {
  const inputs = faulty?.form === LINK_FORM ? faulty.inputs : undefined;
  const common = { prefix: `${LINK_FORM}-`, faults: inputs?.faults ?? [] };
  const { redirect_uris: allowed } = application;
  return (
    <details class="asked" open={inputs !== undefined}>
      <summary>
        Make a link to reconnect <span class="hidden">{account.name}</span>
      </summary>
      <div class="inside">
        <p>
          The user opens it, and signs in at the provider again. The account keeps its id, its scope and its limits.
        </p>
        <FormOf {...here.form(accountPath(application.id, account.id, 'link'), newId('lnk', nowMs))}>
          <TextField
            {...common}
            name="redirect_uri"
            label="Where the user returns to"
            hint={
              allowed.length === 0
                ? 'An https address of your application. The result is in its query.'
                : `An address of your application: ${allowed.join(', ')}`
            }
            value={inputs?.raw('redirect_uri') ?? allowed[0]}
          />
          <SelectField
            {...common}
            name="lifetime"
            label="The link can be used for"
            value={inputs?.raw('lifetime') ?? '24'}
            options={LIFETIMES.map((value) => ({ value, label: LIFETIME_LABELS[value] }))}
          />
          {hosts.length === 0 ? null : (
            <SelectField
              {...common}
              name="domain"
              label="The host of the link"
              value={inputs?.raw('domain') ?? ''}
              options={[
                { value: '', label: 'The one of the service' },
                ...hosts.map((host) => ({ value: host, label: host })),
              ]}
            />
          )}
          <button type="submit">Make the link</button>
        </FormOf>
      </div>
    </details>
  );
}

interface AccountLinkPageProps extends Pick<ReconnectFormProps, 'here' | 'application' | 'account'> {
  readonly link: string;
  readonly expiresOn: Date;
}

/** The only page that shows a link. */
export const AccountLinkPage = ({ here, application, account, link, expiresOn }: AccountLinkPageProps): JSX.Element => (
  <ApplicationLayout here={here} application={application} title="Link to reconnect" part="accounts">
    <h1>Link to reconnect</h1>
    <section class="panel">
      <p>
        For the user of <strong>{account.name}</strong>. It works once, until <Time at={expiresOn} />.
      </p>
      <p class="secret">
        <code>{link}</code>
      </p>
      <p>
        <strong>Copy it now: it is never shown again.</strong> Send it to the user only. Only the mailbox of this
        account can be linked with it.
      </p>
      <p>
        <a class="button" href={accountPath(application.id, account.id)}>
          I have copied it
        </a>
      </p>
    </section>
  </ApplicationLayout>
);
