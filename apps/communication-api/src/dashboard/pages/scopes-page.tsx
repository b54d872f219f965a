import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import { counted } from '../../domain/counted.ts';
import type { Scope, ScopeUse } from '../../scopes/scopes.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import type { Listed } from '../list-page.ts';
import { applicationPath, scopePath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { FaultSummary, NewEntry } from './forms.tsx';
import { Badge, Done, Older, Row } from './parts.tsx';
import { ScopeForm } from './scope-page.tsx';

interface ScopesPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly canManage: boolean;
  readonly scopes: Listed<Scope>;
  readonly uses: ReadonlyMap<string, ScopeUse>;
  readonly inputs: Inputs;
  readonly done: string | undefined;
}

/** The scopes of an application. */
export function ScopesPage(props: ScopesPageProps): JSX.Element {
  const { here, application, canManage, scopes, uses, inputs, done } = props;
  const isEmpty = scopes.rows.length === 0;
  return (
    <ApplicationLayout here={here} application={application} title="Scopes" part="scopes" faulty={inputs.isFaulty}>
      <FaultSummary faults={inputs.faults} />
      <Done text={done} />
      <h1>Scopes</h1>
      <p class="soft">
        A scope is a group of accounts, for example those of one of your customers. A key of a scope reaches only these
        accounts.
      </p>
      {isEmpty ? (
        <p class="empty">There is no scope. An application needs none if all its keys reach all accounts.</p>
      ) : null}
      <ul class="rows">
        {scopes.rows.map((scope) => (
          <Row
            key={scope.id}
            title={scope.name}
            href={scopePath(application.id, scope.id)}
            badge={scope.status === 'disabled' ? <Badge label="Disabled" tone="bad" /> : null}
          >
            <p class="soft">
              {scope.reference === null ? null : (
                <>
                  <code>{scope.reference}</code>,{' '}
                </>
              )}
              {counted(uses.get(scope.id)?.accounts ?? 0, 'account')}, {counted(uses.get(scope.id)?.keys ?? 0, 'key')}
            </p>
          </Row>
        ))}
      </ul>
      <Older href={scopes.next} label="Older scopes" />
      <NewEntry label="a scope" entries="scopes" isAllowed={canManage} isOpen={inputs.isFaulty || isEmpty}>
        <ScopeForm
          {...here.form(applicationPath(application.id, 'scopes'))}
          inputs={inputs.isFaulty ? inputs : undefined}
          label="Create the scope"
        />
      </NewEntry>
    </ApplicationLayout>
  );
}
