import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import { newId } from '../../domain/ids.ts';
import type { Conversation } from '../../webhooks/conversations.ts';
import { type Endpoint, MAX_ENDPOINTS } from '../../webhooks/endpoints.ts';
import { endpointName } from '../endpoint.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import type { Listed } from '../list-page.ts';
import { applicationPath, endpointPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { outcomeText } from './deliveries.tsx';
import { EndpointForm } from './endpoint-form.tsx';
import { FaultSummary, NewEntry } from './forms.tsx';
import { Badge, Done, Older, Row, Time } from './parts.tsx';

interface WebhooksPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly canManage: boolean;
  readonly endpoints: Listed<Endpoint>;
  /** The last attempt, by endpoint. */
  readonly last: ReadonlyMap<string, Conversation>;
  readonly inputs: Inputs;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The webhook endpoints of an application. */
export function WebhooksPage(props: WebhooksPageProps): JSX.Element {
  const { here, application, canManage, endpoints, last, inputs, done, nowMs } = props;
  const isEmpty = endpoints.rows.length === 0;
  return (
    <ApplicationLayout here={here} application={application} title="Webhooks" part="webhooks" faulty={inputs.isFaulty}>
      <FaultSummary faults={inputs.faults} />
      <Done text={done} />
      <h1>Webhooks</h1>
      <p class="soft">
        An endpoint is an address of your application that receives events: an account was linked or has to be linked
        again, an email was sent, a recipient opened it.
      </p>
      {isEmpty ? (
        <p class="empty">
          There is no endpoint yet, so your application receives no events.
          {canManage ? ' Create one, then send it a test event.' : ''}
        </p>
      ) : (
        <ul class="rows">
          {endpoints.rows.map((endpoint) => (
            <EndpointRow key={endpoint.id} endpoint={endpoint} last={last.get(endpoint.id)} />
          ))}
        </ul>
      )}
      <Older href={endpoints.next} label="Older endpoints" />
      <NewEntry label="an endpoint" entries="webhooks" isAllowed={canManage} isOpen={inputs.isFaulty || isEmpty}>
        <EndpointForm
          {...here.form(applicationPath(application.id, 'webhooks'), newId('whe', nowMs))}
          environment={application.environment}
          inputs={inputs.isFaulty ? inputs : undefined}
          label="Create the endpoint"
        />
        <p class="hint">An application has at most {MAX_ENDPOINTS} endpoints.</p>
      </NewEntry>
    </ApplicationLayout>
  );
}

/** Whether an endpoint works. */
export const EndpointBadge = ({ endpoint }: { readonly endpoint: Endpoint }): JSX.Element => {
  if (!endpoint.enabled) return <Badge label="Disabled" tone="bad" />;
  if (endpoint.failing_since !== null) return <Badge label="Failing" tone="bad" />;
  return <Badge label="Enabled" tone="good" />;
};

const EndpointRow = ({ endpoint, last }: { endpoint: Endpoint; last: Conversation | undefined }): JSX.Element => (
  <Row
    title={endpointName(endpoint)}
    href={endpointPath(endpoint.application_id, endpoint.id)}
    badge={<EndpointBadge endpoint={endpoint} />}
  >
    <p class="url soft">{endpoint.url}</p>
    <p class="soft">
      {endpoint.trigger_events.map((trigger, index) => (
        <>
          {index === 0 ? '' : ', '}
          <code>{trigger}</code>
        </>
      ))}
      {'. '}
      {last === undefined ? (
        'Nothing was sent in the last 14 days.'
      ) : (
        <>
          Last attempt <Time at={last.created_at} />: {outcomeText(last)}.
        </>
      )}
    </p>
  </Row>
);
