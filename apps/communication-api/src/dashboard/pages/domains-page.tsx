import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { CheckedRecord } from '../../domains/domain-checks.ts';
import { type Domain, MAX_DOMAINS } from '../../domains/domains.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import type { Listed } from '../list-page.ts';
import { applicationPath, PATHS } from '../paths.ts';
import { SelectField, TextField } from './fields.tsx';
import { AskedButton, FaultSummary, FormOf } from './forms.tsx';
import { Layout } from './layout.tsx';
import { Done, Older, Time } from './parts.tsx';

interface DomainsPageProps {
  readonly here: Here;
  readonly domains: Listed<Domain>;
  readonly recordsOf: (domain: Domain) => readonly CheckedRecord[];
  /** To choose from. */
  readonly applications: readonly Application[];
  /** The domain that the person just checked. */
  readonly checked: Domain | undefined;
  readonly inputs: Inputs;
  readonly done: string | undefined;
}

/** The custom domains of an organization. */
export function DomainsPage(props: DomainsPageProps): JSX.Element {
  const { here, domains, checked, inputs, done } = props;
  const isEmpty = domains.rows.length === 0;
  return (
    <Layout here={here} title="Domains" part="domains" faulty={inputs.isFaulty}>
      <FaultSummary faults={inputs.faults} />
      <Done text={done} />
      <CheckResult domain={checked} />
      <h1>Domains</h1>
      <p class="soft">
        With your own domain, your users see your name, not the name of this service: in the address of the wizard that
        links their mailboxes, and in the links of tracked emails.
      </p>
      {isEmpty ? <p class="empty">There is no domain. The default hosts of the service are used.</p> : null}
      <ul class="rows">
        {domains.rows.map((domain) => (
          <DomainRow key={domain.id} {...props} domain={domain} />
        ))}
      </ul>
      <Older href={domains.next} label="Older domains" />
      <DomainForm {...props} isOpen={inputs.isFaulty || isEmpty} />
    </Layout>
  );
}

const typesOf = (types: readonly string[]): string =>
  types.length === 1
    ? `the ${types[0]} record was not found`
    : `the ${types.join(' record and the ')} record were not found`;

/** The findings of a check. */
function CheckResult({ domain }: { readonly domain: Domain | undefined }): JSX.Element | null {
  if (domain === undefined || domain.checked_at === null) return null;
  if (domain.missing.length === 0) return <Done text={`${domain.host} is verified. Both records were found.`} />;
  return (
    <p class="summary" role="alert">
      {`${domain.host}: ${typesOf(domain.missing)}. New records can take some minutes, or hours, until they are seen.`}
    </p>
  );
}

const PURPOSES = { auth: 'Wizard', tracking: 'Tracked links' };

const STATES = {
  pending: { label: 'Pending', look: '' },
  verified: { label: 'Verified', look: 'good' },
  failing: { label: 'Failing', look: 'bad' },
};

function DomainRow({ here, recordsOf, applications, domain }: DomainsPageProps & { domain: Domain }): JSX.Element {
  const { id, application_id, host, purpose, status, missing, checked_at } = domain;
  const { label, look } = STATES[status];
  const path = `${PATHS.domains}/${id}`;
  return (
    <li id={id}>
      <div class="what">
        <h2 class="url">{host}</h2>
        <span class={`badge ${look}`}>{label}</span>
      </div>
      <p class="soft">
        {PURPOSES[purpose]} of{' '}
        <a href={applicationPath(application_id)}>
          {applications.find((each) => each.id === application_id)?.name ?? application_id}
        </a>
        ,{' '}
        {checked_at === null ? (
          'never checked'
        ) : (
          <>
            last checked <Time at={checked_at} />
          </>
        )}
      </p>
      {status === 'failing' ? (
        <p class="fault">
          A record was missing on three days in a row. New links use the default host until the records are back.
        </p>
      ) : null}
      <details class="records" open={status !== 'verified' || missing.length > 0}>
        <summary>
          DNS records <span class="hidden">of {host}</span>
        </summary>
        <div class="inside">
          {recordsOf(domain).map((record) => (
            <Record key={record.type} record={record} />
          ))}
        </div>
      </details>
      <div class="deeds">
        <FormOf {...here.form(`${path}/check`)}>
          <button type="submit" class="quiet">
            Check now <span class="hidden">{host}</span>
          </button>
        </FormOf>
        <AskedButton
          {...here.form(`${path}/remove`)}
          label="Remove"
          subject={host}
          consequence={
            purpose === 'auth'
              ? 'Links of the wizard on this host stop working.'
              : 'Links of emails that were sent stop working, if DNS leads elsewhere.'
          }
        />
      </div>
    </li>
  );
}

const FOUND = {
  unchecked: { label: 'Not checked', look: '' },
  found: { label: 'Found', look: 'good' },
  missing: { label: 'Missing', look: 'bad' },
};

const Record = ({ record: { type, name, value, status } }: { readonly record: CheckedRecord }): JSX.Element => (
  <dl class="record">
    <dt>Type</dt>
    <dd class="what">
      <code>{type}</code> <span class={`badge ${FOUND[status].look}`}>{FOUND[status].label}</span>
    </dd>
    <dt>Name</dt>
    <dd>
      <code class="copied">{name}</code>
    </dd>
    <dt>Value</dt>
    <dd>
      <code class="copied">{value}</code>
    </dd>
  </dl>
);

function DomainForm({ here, applications, inputs, isOpen }: DomainsPageProps & { isOpen: boolean }): JSX.Element {
  if (applications.length === 0)
    return (
      <p class="soft">
        A domain belongs to an application: <a href={PATHS.applications}>create one first</a>.
      </p>
    );
  const { faults } = inputs;
  return (
    <details class="panel" open={isOpen}>
      <summary>Add a domain</summary>
      <div class="inside">
        <FormOf {...here.form(PATHS.domains)}>
          <TextField
            name="host"
            label="Host"
            type="url"
            hint="A host name below a domain of yours, such as connect.app.example."
            value={inputs.raw('host')}
            faults={faults}
          />
          <SelectField
            name="purpose"
            label="Used for"
            value={inputs.raw('purpose')}
            options={[
              { value: 'auth', label: 'The wizard, where users link their mailboxes' },
              { value: 'tracking', label: 'The links and pixels in tracked emails' },
            ]}
            faults={faults}
          />
          <SelectField
            name="application"
            label="Application"
            hint={`It alone uses the domain. An application has at most ${MAX_DOMAINS} domains.`}
            value={inputs.raw('application')}
            options={applications.map(({ id, name, environment }) => ({
              value: id,
              label: `${name} (${environment})`,
            }))}
            faults={faults}
          />
          <button type="submit">Add the domain</button>
        </FormOf>
      </div>
    </details>
  );
}
