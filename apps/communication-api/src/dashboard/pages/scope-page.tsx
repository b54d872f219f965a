import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import { counted } from '../../domain/counted.ts';
import type { Scope, ScopeUse } from '../../scopes/scopes.ts';
import type { FormProps, Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import { applicationPath, scopePath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { TextField } from './fields.tsx';
import { AskedButton, FaultSummary, FormOf } from './forms.tsx';
import { Badge, Day, Done, Fact } from './parts.tsx';

interface ScopePageProps {
  readonly here: Here;
  readonly application: Application;
  readonly scope: Scope;
  readonly use: ScopeUse;
  readonly canManage: boolean;
  /** A form that was sent with faults. */
  readonly inputs: Inputs | undefined;
  readonly done: string | undefined;
}

/** A scope, and the number of its accounts and keys. */
export function ScopePage(props: ScopePageProps): JSX.Element {
  const { here, application, scope, use, canManage, inputs, done } = props;
  const path = scopePath(application.id, scope.id);
  const hasEntered = inputs?.faults.some(({ field }) => field !== undefined) ?? false;
  return (
    <ApplicationLayout
      here={here}
      application={application}
      title={scope.name}
      part="scopes"
      faulty={inputs !== undefined}
    >
      <FaultSummary faults={inputs?.faults ?? []} />
      <Done text={done} />
      <div class="what">
        <h1>{scope.name}</h1>
        {scope.status === 'disabled' ? <Badge label="Disabled" tone="bad" /> : <Badge label="Active" tone="good" />}
      </div>
      {scope.status === 'disabled' ? <p class="fault">Requests with the keys of this scope are refused.</p> : null}
      <dl class="facts panel">
        <Fact name="Accounts">
          <a href={`${applicationPath(application.id, 'accounts')}?scope_id=${scope.id}`}>
            {counted(use.accounts, 'account')}
          </a>
        </Fact>
        <Fact name="Keys">
          <a href={`${applicationPath(application.id)}#account-keys`}>{counted(use.keys, 'key')}</a>
        </Fact>
        <Fact name="Reference">{scope.reference === null ? 'none' : <code>{scope.reference}</code>}</Fact>
        <Fact name="Created on">
          <Day at={scope.created_at} />
        </Fact>
        <Fact name="Id">
          <code>{scope.id}</code>
        </Fact>
      </dl>
      {canManage ? (
        <>
          <details class="panel" open={hasEntered}>
            <summary>Change the name or the reference</summary>
            <div class="inside">
              <ScopeForm
                {...here.form(path)}
                scope={scope}
                inputs={hasEntered ? inputs : undefined}
                label="Change the scope"
              />
            </div>
          </details>
          <Actions {...props} path={path} />
        </>
      ) : null}
    </ApplicationLayout>
  );
}

function Actions({ here, scope, use, path }: ScopePageProps & { readonly path: string }): JSX.Element {
  return (
    <div class="deeds">
      {scope.status === 'disabled' ? (
        <FormOf {...here.form(`${path}/enable`)}>
          <button type="submit">Enable the scope</button>
        </FormOf>
      ) : (
        <AskedButton
          {...here.form(`${path}/disable`)}
          label="Disable"
          subject={scope.name}
          consequence="Requests with its keys are refused until the scope is enabled. Nothing is deleted."
        />
      )}
      {use.accounts > 0 ? (
        <p class="soft">
          The scope cannot be deleted, because it has {counted(use.accounts, 'account')}. Remove{' '}
          {use.accounts === 1 ? 'it' : 'them'} first.
        </p>
      ) : (
        <AskedButton
          {...here.form(`${path}/delete`)}
          label="Delete"
          subject={scope.name}
          consequence={
            use.keys === 0
              ? 'The scope is deleted. It cannot be undone.'
              : `The scope is deleted, and ${counted(use.keys, 'key')} of it revoked: requests with them are refused at once. It cannot be undone.`
          }
        />
      )}
    </div>
  );
}

interface ScopeFormProps extends FormProps {
  /** The scope to change. Undefined: the scope is new. */
  readonly scope?: Scope | undefined;
  readonly inputs: Inputs | undefined;
  readonly label: string;
}

/** The fields of a scope, in a form. */
export const ScopeForm = ({ scope, inputs, label, ...form }: ScopeFormProps): JSX.Element => (
  <FormOf {...form}>
    <TextField name="name" label="Name" value={inputs?.raw('name') ?? scope?.name} faults={inputs?.faults ?? []} />
    <TextField
      name="reference"
      label="Reference"
      optional
      hint="What your application calls the scope, for example the id of a customer."
      value={inputs?.raw('reference') ?? scope?.reference ?? ''}
      faults={inputs?.faults ?? []}
    />
    <button type="submit">{label}</button>
  </FormOf>
);
