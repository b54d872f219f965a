import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { PendingJob } from '../../jobs/job.ts';
import type { Conversation } from '../../webhooks/conversations.ts';
import type { Endpoint } from '../../webhooks/endpoints.ts';
import type { Event } from '../../webhooks/event.ts';
import { endpointName } from '../endpoint.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import { accountPath, deliveryPath, endpointPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { AttemptLine, OutcomeBadge, outcomeText } from './deliveries.tsx';
import { FaultSummary, FormOf } from './forms.tsx';
import { Done, Text, Time } from './parts.tsx';

interface DeliveryPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly endpoint: Endpoint;
  readonly event: Event;
  /** The body of each request, byte for byte. */
  readonly body: string;
  readonly canManage: boolean;
  /** The newest first. */
  readonly attempts: readonly Conversation[];
  /** The job of the delivery, unless it is done or given up. */
  readonly pending: PendingJob | undefined;
  /** The id of the last attempt before the person requested a redelivery. Undefined: the person did not. */
  readonly after: string | undefined;
  /** Whether the page reloads until the endpoint answers. */
  readonly isWaiting: boolean;
  readonly inputs: Inputs | undefined;
  readonly nowMs: number;
}

/** The requests to an endpoint about one event, and its answers. */
export function DeliveryPage(props: DeliveryPageProps): JSX.Element {
  const { here, application, endpoint, event, body, canManage, attempts, isWaiting, inputs } = props;
  return (
    <ApplicationLayout
      here={here}
      application={application}
      title={event.type}
      part="webhooks"
      faulty={inputs !== undefined}
    >
      <FaultSummary faults={inputs?.faults ?? []} />
      <Result {...props} />
      <div>
        <p>
          <a href={endpointPath(application.id, endpoint.id)}>{endpointName(endpoint)}</a>
        </p>
        <h1 class="url">{event.type}</h1>
        <p class="soft">
          <code>{event.id}</code>, <Time at={event.created_at} to="second" />
          {event.account_id === null ? null : (
            <>
              , account{' '}
              <a href={accountPath(application.id, event.account_id)}>
                <code>{event.account_id}</code>
              </a>
            </>
          )}
        </p>
      </div>
      <State {...props} />
      {canManage && endpoint.enabled && !isWaiting ? (
        <div class="buttons">
          <FormOf {...here.form(deliveryPath(application.id, endpoint.id, event.id, 'redeliver'))}>
            <button type="submit">Redeliver</button>
          </FormOf>
        </div>
      ) : null}
      {canManage && !endpoint.enabled ? (
        <p class="soft">The endpoint is disabled. Enable it to have the event delivered again.</p>
      ) : null}
      <section aria-labelledby="payload">
        <h2 id="payload">Payload</h2>
        <Text text={JSON.stringify(JSON.parse(body), null, 2)} />
        <details>
          <summary>The body as it is sent, byte for byte</summary>
          <div class="inside">
            <p class="soft">The signature is made of these bytes. They are the same at each attempt.</p>
            <Text text={body} />
          </div>
        </details>
      </section>
      <section aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        {attempts.length === 0 ? <p class="empty">No attempt is stored. Attempts are kept for 14 days.</p> : null}
        <ol class="rows">
          {attempts.map((attempt) => (
            <li key={attempt.id}>
              <div class="what">
                <OutcomeBadge outcome={attempt.outcome} />
              </div>
              <AttemptLine attempt={attempt} />
              <Response attempt={attempt} />
            </li>
          ))}
        </ol>
      </section>
    </ApplicationLayout>
  );
}

/** The result of the delivery that the person requested. */
function Result({ attempts: [last], after, isWaiting, inputs }: DeliveryPageProps): JSX.Element | null {
  if (after === undefined || inputs !== undefined) return null;
  if (isWaiting) return <Done text="The event is being sent. This page shows the answer as soon as it is there." />;
  if (last === undefined || last.id <= after)
    return (
      <p class="summary" role="alert">
        The event was not sent, because the endpoint was disabled meanwhile.
      </p>
    );
  if (last.outcome === 'delivered')
    return <Done text={`The event is delivered: the endpoint ${outcomeText(last)}, after ${last.duration_ms} ms.`} />;
  return (
    <p class="summary" role="alert">
      {`The event was sent, but not delivered: ${last.status === null ? '' : 'the endpoint '}${outcomeText(last)}.`}
    </p>
  );
}

/** The next step. */
function State({ endpoint, attempts: [last], pending, isWaiting, nowMs }: DeliveryPageProps): JSX.Element | null {
  if (isWaiting) return null;
  if (pending !== undefined && !pending.isTaken && pending.nextAt.getTime() > nowMs)
    return (
      <p>
        The next attempt is at <Time at={pending.nextAt} to="second" />. A redelivery does not wait for it.
      </p>
    );
  if (last === undefined || last.outcome === 'delivered' || pending !== undefined) return null;
  if (!endpoint.enabled) return <p>No attempt follows, because the endpoint is disabled.</p>;
  return <p>No attempt follows: the event is given up, unless you have it delivered again.</p>;
}

function Response({ attempt: { status, response } }: { readonly attempt: Conversation }): JSX.Element | null {
  if (status === null) return null;
  return response === null || response === '' ? (
    <p class="soft">The answer had no body.</p>
  ) : (
    <>
      <p class="soft">The answer, at most its first kilobyte:</p>
      <Text text={response} />
    </>
  );
}
