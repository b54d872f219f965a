import type { FastifyReply } from 'fastify';
import { endpointUrl, MAX_URL } from '../api/webhooks/schema.ts';
import type { Application } from '../applications/applications.ts';
import { checkApplicationUrl } from '../domain/application-url.ts';
import { TRIGGERS } from '../domain/event-types.ts';
import { firstIdAt } from '../domain/ids.ts';
import { mayInApplication } from '../domain/member-roles.ts';
import type { Page } from '../domain/page.ts';
import type { Rooms } from '../rooms.ts';
import { secretsVersionOf } from '../webhooks/endpoint-secrets.ts';
import type { Endpoint, EndpointFields } from '../webhooks/endpoints.ts';
import { seeOther, sendPage } from './answers.tsx';
import { endpointDeed, endpointOf } from './endpoint.ts';
import { type HereInApplication, NEW_ID_FIELD, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { listed, pageAsked } from './list-page.ts';
import { EndpointPage } from './pages/endpoint-page.tsx';
import { NewSecretPage } from './pages/new-secret-page.tsx';
import { WebhooksPage } from './pages/webhooks-page.tsx';
import { applicationPath, deliveryPath, endpointPath } from './paths.ts';
import type { Router } from './router.ts';

const LIST = applicationPath(':application', 'webhooks');
const ONE = endpointPath(':application', ':endpoint');
const MESSAGES: Readonly<Record<string, string>> = {
  changed: 'The endpoint is changed.',
  enabled: 'The endpoint is enabled. It receives what happens from now on.',
  disabled: 'The endpoint is disabled. The events that waited for it are dropped.',
  deleted: 'The endpoint is deleted.',
};
const ONE_ROW: Page = { limit: 1, offset: 0, before: undefined };
const NO_INPUTS = new Map<string, string>();

/** The entries in the form of an endpoint, checked by the rules of the API. */
async function fieldsIn(
  inputs: Inputs,
  { environment }: Application,
): Promise<Pick<EndpointFields, 'url' | 'triggerEvents' | 'description'>> {
  const url = inputs.raw('url').trim();
  if (endpointUrl.safeParse(url).success)
    await inputs.attempt('url', () => checkApplicationUrl('url', url, environment));
  else inputs.fault('url', `Enter an address of at most ${MAX_URL} characters, such as https://app.example/webhooks.`);
  const kinds = inputs.ticked('kinds', TRIGGERS);
  if (kinds.length === 0) inputs.fault('kinds', 'Choose at least one kind of event.');
  // `*` includes all the others.
  const triggerEvents = kinds.includes('*') ? ['*'] : kinds;
  return { url, triggerEvents, description: inputs.optionalName('description') };
}

/** The webhook endpoints of an application. */
export function webhookRoutes(
  router: Router,
  { endpoints, conversations, fanOut, events, people, clock }: Rooms,
): void {
  const canManage = ({ here, application }: HereInApplication): boolean =>
    mayInApplication(here.member.role, 'manage webhooks', application.environment);

  async function showList(at: HereInApplication, inputs: Inputs): Promise<FastifyReply> {
    const { here, application } = at;
    const rows = await endpoints.list(application.id, pageAsked(here.request.query, 'before', 'whe'));
    const last = await conversations.lastOfEach(application.id);
    const page = (
      <WebhooksPage
        here={here}
        application={application}
        canManage={canManage(at)}
        endpoints={listed(rows, 'before')}
        last={new Map(last.map((each) => [each.endpoint_id, each]))}
        inputs={inputs}
        done={here.messageIn(MESSAGES)}
        nowMs={clock()}
      />
    );
    return sendPage(here.reply, page, inputs.isFaulty ? inputs.status : 200);
  }

  async function showOne(at: HereInApplication, endpoint: Endpoint, inputs?: Inputs): Promise<FastifyReply> {
    const { here, application } = at;
    const { query } = here.request;
    const onlyFailed = 'failed' in (query as object);
    const attempts = (outcome: 'delivered' | 'failed' | undefined, page: Page) =>
      conversations.list(application.id, { endpointId: endpoint.id, outcome }, page);
    const [rows, [delivered], [failed], pending] = await Promise.all([
      attempts(onlyFailed ? 'failed' : undefined, pageAsked(query, 'before', 'whc')),
      attempts('delivered', ONE_ROW),
      attempts('failed', ONE_ROW),
      fanOut.countPending(application.id, endpoint.id),
    ]);
    const page = (
      <EndpointPage
        here={here}
        application={application}
        endpoint={endpoint}
        canManage={canManage(at)}
        attempts={listed(rows, 'before')}
        onlyFailed={onlyFailed}
        last={{ delivered, failed }}
        pending={pending}
        previousUntil={endpoints.secrets.previousUntil(endpoint)}
        secretsVersion={secretsVersionOf(endpoint)}
        inputs={inputs}
        done={here.messageIn(MESSAGES)}
      />
    );
    return sendPage(here.reply, page, inputs?.status ?? 200);
  }

  router.applicationPage(LIST, 'read webhooks', (at) => showList(at, new Inputs(NO_INPUTS)));

  router.applicationForm(LIST, 'manage webhooks', async (at) => {
    const { here, application } = at;
    const inputs = new Inputs(here.entered);
    const fields = await fieldsIn(inputs, application);
    if (inputs.isFaulty) return showList(at, inputs);
    const id = inputs.raw(NEW_ID_FIELD);
    const made = await inputs.attempt(undefined, () =>
      people.audited(here.actor, async (transaction) => {
        const fresh = { id, ...fields, accountIds: null, enabled: true };
        const created = await endpoints.create(application.id, fresh, transaction);
        return [created, endpointDeed(created.endpoint, 'created a webhook endpoint')];
      }),
    );
    if (made === undefined) return showList(at, inputs);
    return sendPage(here.reply, <NewSecretPage here={here} application={application} {...made} />);
  });

  router.applicationPage(ONE, 'read webhooks', async (at) => showOne(at, await endpointOf({ endpoints }, at)));

  router.applicationForm(ONE, 'manage webhooks', async (at) => {
    const { here, application } = at;
    const endpoint = await endpointOf({ endpoints }, at);
    const inputs = new Inputs(here.entered);
    const fields = await fieldsIn(inputs, application);
    if (inputs.isFaulty) return showOne(at, endpoint, inputs);
    return change(at, endpoint, fields, 'changed');
  });

  for (const [verb, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    router.applicationForm(`${ONE}/${verb}`, 'manage webhooks', async (at) =>
      change(at, await endpointOf({ endpoints }, at), { enabled }, `${verb}d`),
    );

  async function change(
    { here, application }: HereInApplication,
    { id }: Endpoint,
    changes: Partial<EndpointFields>,
    done: 'changed' | 'enabled' | 'disabled',
  ): Promise<FastifyReply> {
    const changed = await people.audited(here.actor, async (transaction) => {
      const row = await endpoints.update(application.id, id, changes, transaction);
      return [row, row && endpointDeed(row, `${done} a webhook endpoint`)];
    });
    if (changed === undefined) return unknown();
    return seeOther(here.reply, `${endpointPath(application.id, id)}?done=${done}`);
  }

  router.applicationForm(`${ONE}/secret`, 'manage webhooks', async (at) => {
    const { here, application } = at;
    const endpoint = await endpointOf({ endpoints }, at);
    const inputs = new Inputs(here.entered);
    const rotated = await inputs.attempt(undefined, () =>
      people.audited(here.actor, async (transaction) => {
        const made = await endpoints.rotateSecret(application.id, endpoint.id, inputs.raw('seen'), transaction);
        return [made, made && endpointDeed(endpoint, 'made a new secret for a webhook endpoint')];
      }),
    );
    if (inputs.isFaulty) return showOne(at, endpoint, inputs);
    if (rotated === undefined) return unknown();
    const page = <NewSecretPage here={here} application={application} endpoint={endpoint} {...rotated} />;
    return sendPage(here.reply, page);
  });

  router.applicationForm(`${ONE}/delete`, 'manage webhooks', async (at) => {
    const { here, application } = at;
    const endpoint = await endpointOf({ endpoints }, at);
    await people.audited(here.actor, async (transaction) => {
      const isDone = await endpoints.remove(application.id, endpoint.id, transaction);
      return [isDone, isDone ? endpointDeed(endpoint, 'deleted a webhook endpoint') : undefined];
    });
    return seeOther(here.reply, `${applicationPath(application.id, 'webhooks')}?done=deleted`);
  });

  router.applicationForm(`${ONE}/test`, 'manage webhooks', async (at) => {
    const { here, application } = at;
    const endpoint = await endpointOf({ endpoints }, at);
    const inputs = new Inputs(here.entered);
    const event = await inputs.attempt(undefined, () =>
      people.audited(here.actor, async (transaction) => [
        await events.addTest(application.id, endpoint.id, transaction),
        endpointDeed(endpoint, 'sent a test event'),
      ]),
    );
    if (event === undefined) return showOne(at, endpoint, inputs);
    return seeOther(here.reply, `${deliveryPath(application.id, endpoint.id, event)}?since=${firstIdAt('whc', 0)}`);
  });
}
