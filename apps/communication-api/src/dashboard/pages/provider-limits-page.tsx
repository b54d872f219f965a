import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { FaultyForm } from '../faulty-form.ts';
import type { Here } from '../here.ts';
import type { LimitTarget } from '../limit-target.ts';
import type { LimitView } from '../limit-views.ts';
import { queryOf } from '../list-page.ts';
import { applicationPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { FaultSummary } from './forms.tsx';
import { LIMIT_DONE, LimitPanel } from './limit-panel.tsx';
import { Done } from './parts.tsx';

interface ProviderLimitsPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly target: LimitTarget;
  readonly canManage: boolean;
  readonly limits: readonly LimitView[];
  readonly faulty: FaultyForm | undefined;
  /** Whether a limit was just changed. */
  readonly isChanged: boolean;
}

/** The limits of all accounts of a provider, in an application. */
export function ProviderLimitsPage(props: ProviderLimitsPageProps): JSX.Element {
  const { here, application, target, canManage, limits, faulty, isChanged } = props;
  const title = `Limits of ${target.provider}`;
  const ofProvider = queryOf({ provider: target.provider });
  return (
    <ApplicationLayout here={here} application={application} title={title} part="limits" faulty={faulty !== undefined}>
      <FaultSummary faults={faulty?.inputs.faults ?? []} prefix={`${faulty?.form}-`} />
      <Done text={isChanged && faulty === undefined ? LIMIT_DONE : undefined} />
      <h1>{title}</h1>
      <p>
        <a href={`${applicationPath(application.id, 'accounts')}?${ofProvider}`}>Accounts of {target.provider}</a>
      </p>
      <section aria-labelledby="limits">
        <h2 id="limits">What each account may use</h2>
        <p class="soft">An account with a limit of its own keeps it.</p>
        {limits.map((limit) => (
          <LimitPanel
            key={limit.value}
            here={here}
            target={target}
            limit={limit}
            canManage={canManage}
            faulty={faulty}
          />
        ))}
      </section>
      {canManage ? null : <p class="soft">Your role may only look at the limits of a production application.</p>}
    </ApplicationLayout>
  );
}
