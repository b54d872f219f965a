import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { Conversation } from '../../webhooks/conversations.ts';
import type { Endpoint } from '../../webhooks/endpoints.ts';
import { endpointName } from '../endpoint.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import type { Listed } from '../list-page.ts';
import { accountPath, deliveryPath, endpointPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { AttemptLine, OutcomeBadge, outcomeText } from './deliveries.tsx';
import { EndpointForm } from './endpoint-form.tsx';
import { AskedButton, FaultSummary, FormOf } from './forms.tsx';
import { Done, Fact, Older, Time } from './parts.tsx';
import { EndpointBadge } from './webhooks-page.tsx';

interface EndpointPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly endpoint: Endpoint;
  readonly canManage: boolean;
  readonly attempts: Listed<Conversation>;
  /** Whether only failed attempts are listed. */
  readonly onlyFailed: boolean;
  readonly last: { readonly delivered: Conversation | undefined; readonly failed: Conversation | undefined };
  /** Events that wait for the endpoint. */
  readonly pending: number;
  /** Until when the old secret signs as well. */
  readonly previousUntil: Date | undefined;
  /** Which secret a form replaces. */
  readonly secretsVersion: string;
  /** A form that was sent with faults. */
  readonly inputs: Inputs | undefined;
  readonly done: string | undefined;
}

/** A webhook endpoint with its deliveries. */
export function EndpointPage(props: EndpointPageProps): JSX.Element {
  const { here, application, endpoint, canManage, inputs, done } = props;
  const path = endpointPath(application.id, endpoint.id);
  // An action that was refused as a whole, such as a second rotation, leaves nothing to correct in the form.
  const hasEntered = inputs?.faults.some(({ field }) => field !== undefined) ?? false;
  return (
    <ApplicationLayout
      here={here}
      application={application}
      title={endpointName(endpoint)}
      part="webhooks"
      faulty={inputs !== undefined}
    >
      <FaultSummary faults={inputs?.faults ?? []} />
      <Done text={done} />
      <div class="what">
        <h1 class="url">{endpointName(endpoint)}</h1>
        <EndpointBadge endpoint={endpoint} />
      </div>
      <State endpoint={endpoint} />
      <Facts {...props} />
      {canManage ? (
        <>
          <Actions {...props} path={path} />
          <details class="panel" open={hasEntered}>
            <summary>Change the address, the name or the kinds of events</summary>
            <div class="inside">
              <EndpointForm
                {...here.form(path)}
                endpoint={endpoint}
                environment={application.environment}
                inputs={hasEntered ? inputs : undefined}
                label="Change the endpoint"
              />
            </div>
          </details>
        </>
      ) : null}
      <Deliveries {...props} path={path} />
    </ApplicationLayout>
  );
}

const WHY_DISABLED = {
  gone: 'The service disabled the endpoint, because it answered 410 (Gone).',
  failing: 'The service disabled the endpoint, because every delivery failed for five days.',
  none: 'The endpoint was disabled by a person or by the API.',
};

/** Why an endpoint receives nothing, if it does not. */
function State({ endpoint }: { readonly endpoint: Endpoint }): JSX.Element | null {
  if (!endpoint.enabled)
    return (
      <p class="fault">
        {WHY_DISABLED[endpoint.disabled_reason ?? 'none']} It receives nothing. What happens meanwhile is not sent
        later.
      </p>
    );
  return endpoint.failing_since === null ? null : (
    <p class="fault">
      Every delivery since <Time at={endpoint.failing_since} /> failed. After five days without a success, the service
      disables it.
    </p>
  );
}

const LastAttempt = ({ attempt }: { readonly attempt: Conversation | undefined }): JSX.Element =>
  attempt === undefined ? (
    <>none in the last 14 days</>
  ) : (
    <>
      <Time at={attempt.created_at} />, {outcomeText(attempt)}
    </>
  );

function Facts({ application, endpoint, last, pending, previousUntil }: EndpointPageProps): JSX.Element {
  return (
    <dl class="facts panel">
      <Fact name="Address" isLong>
        {endpoint.url}
      </Fact>
      <Fact name="Kinds of events" isLong>
        <span class="chips">
          {endpoint.trigger_events.map((trigger) => (
            <code key={trigger}>{trigger}</code>
          ))}
        </span>
      </Fact>
      <Fact name="Accounts">
        {endpoint.account_ids === null
          ? 'all'
          : endpoint.account_ids.map((id) => (
              <a key={id} class="entry" href={accountPath(application.id, id)}>
                <code>{id}</code>
              </a>
            ))}
      </Fact>
      <Fact name="Last success">
        <LastAttempt attempt={last.delivered} />
      </Fact>
      <Fact name="Last failure">
        <LastAttempt attempt={last.failed} />
      </Fact>
      <Fact name="Events that wait">{pending}</Fact>
      {previousUntil === undefined ? null : (
        <Fact name="Secrets">
          two sign, the one of before until <Time at={previousUntil} />
        </Fact>
      )}
      <Fact name="Id">
        <code>{endpoint.id}</code>
      </Fact>
    </dl>
  );
}

function Actions({ here, endpoint, previousUntil, secretsVersion, path }: EndpointPageProps & { path: string }) {
  const subject = endpointName(endpoint);
  return (
    <>
      <div class="buttons">
        {endpoint.enabled ? (
          <FormOf {...here.form(`${path}/test`)}>
            <button type="submit">Send a test event</button>
          </FormOf>
        ) : (
          <FormOf {...here.form(`${path}/enable`)}>
            <button type="submit">Enable the endpoint</button>
          </FormOf>
        )}
      </div>
      <div class="deeds">
        <AskedButton
          {...here.form(`${path}/secret`)}
          label="Rotate the secret"
          subject={`of ${subject}`}
          consequence={
            previousUntil === undefined
              ? 'The new secret is shown once. For 24 hours, the present one signs as well.'
              : 'The secret was changed less than 24 hours ago. The one of before that change ends now. The present one signs for 24 hours more.'
          }
          isHarmless={previousUntil === undefined}
        >
          <input type="hidden" name="seen" value={secretsVersion} />
        </AskedButton>
        {endpoint.enabled ? (
          <AskedButton
            {...here.form(`${path}/disable`)}
            label="Disable"
            subject={subject}
            consequence="The events that wait for it are dropped, and those that happen meanwhile are not sent later."
          />
        ) : null}
        <AskedButton
          {...here.form(`${path}/delete`)}
          label="Delete"
          subject={subject}
          consequence="The endpoint, its secret and the events that wait for it are deleted. It cannot be undone."
        />
      </div>
    </>
  );
}

/** The attempts of the last 14 days. */
function Deliveries({ application, endpoint, attempts, onlyFailed, path }: EndpointPageProps & { path: string }) {
  const { rows, next } = attempts;
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <nav class="switch" aria-label="Deliveries">
        <a href={path} aria-current={onlyFailed ? undefined : 'page'}>
          All
        </a>
        <a href={`${path}?failed`} aria-current={onlyFailed ? 'page' : undefined}>
          Failed only
        </a>
      </nav>
      {rows.length === 0 ? (
        <p class="empty">
          {onlyFailed
            ? 'No delivery failed in the last 14 days.'
            : 'Nothing was sent to this endpoint in the last 14 days. A test event shows whether it works.'}
        </p>
      ) : (
        <ol class="rows">
          {rows.map((row) => (
            <li key={row.id}>
              <div class="what">
                <a class="title" href={deliveryPath(application.id, endpoint.id, row.event_id)}>
                  {row.event_type}
                </a>
                <OutcomeBadge outcome={row.outcome} />
              </div>
              <AttemptLine attempt={row} />
            </li>
          ))}
        </ol>
      )}
      <Older href={next !== undefined && onlyFailed ? `${next}&failed` : next} label="Older deliveries" />
    </section>
  );
}
