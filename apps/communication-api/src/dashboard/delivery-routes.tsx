import type { FastifyReply } from 'fastify';
import { firstIdAt, isId } from '../domain/ids.ts';
import { mayInApplication } from '../domain/member-roles.ts';
import type { Page } from '../domain/page.ts';
import type { Rooms } from '../rooms.ts';
import { bodyOf } from '../webhooks/delivery.ts';
import type { Endpoint } from '../webhooks/endpoints.ts';
import type { Event } from '../webhooks/event.ts';
import { seeOther, sendPage } from './answers.tsx';
import { endpointDeed, endpointOf } from './endpoint.ts';
import { type HereInApplication, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { DeliveryPage } from './pages/delivery-page.tsx';
import { deliveryPath } from './paths.ts';
import type { Router } from './router.ts';

const PATH = deliveryPath(':application', ':endpoint', ':event');
/** More than the attempts of one delivery. Attempts of earlier redeliveries may be left out. */
const ATTEMPTS: Page = { limit: 20, offset: 0, before: undefined };
/** How often the page reloads until the endpoint answers. */
const WAITING_SECONDS = 1;

/** The requests to an endpoint about one event, and its answers. */
export function deliveryRoutes(router: Router, { endpoints, conversations, fanOut, people, clock }: Rooms): void {
  async function deliveryOf(at: HereInApplication) {
    const { event: id } = at.here.request.params as { readonly event: string };
    const endpoint = await endpointOf({ endpoints }, at);
    const event = (await fanOut.findEvent(at.application.id, id)) ?? unknown();
    return { endpoint, event };
  }

  const attemptsOf = ({ application_id: applicationId, id: endpointId }: Endpoint, { id: eventId }: Event) =>
    conversations.list(applicationId, { endpointId, eventId }, ATTEMPTS);

  async function show(
    { here, application }: HereInApplication,
    { endpoint, event }: { readonly endpoint: Endpoint; readonly event: Event },
    inputs?: Inputs,
  ): Promise<FastifyReply> {
    const { since } = here.request.query as { readonly since?: unknown };
    const after = typeof since === 'string' && isId(since, 'whc') ? since : undefined;
    // An attempt is stored before its job is deleted. So if there is no job, the attempt is found.
    const pending = await fanOut.findPending(application.id, endpoint.id, event.id);
    const attempts = await attemptsOf(endpoint, event);
    const isWaiting = after !== undefined && pending !== undefined && !((attempts[0]?.id ?? '') > after);
    if (isWaiting) here.reply.header('refresh', WAITING_SECONDS);
    const page = (
      <DeliveryPage
        here={here}
        application={application}
        endpoint={endpoint}
        event={event}
        body={bodyOf(event)}
        canManage={mayInApplication(here.member.role, 'manage webhooks', application.environment)}
        attempts={attempts.slice(0, ATTEMPTS.limit)}
        pending={pending}
        after={after}
        isWaiting={isWaiting}
        inputs={inputs}
        nowMs={clock()}
      />
    );
    return sendPage(here.reply, page, inputs?.status ?? 200);
  }

  router.applicationPage(PATH, 'read webhooks', async (at) => show(at, await deliveryOf(at)));

  router.applicationForm(`${PATH}/redeliver`, 'manage webhooks', async (at) => {
    const { here, application } = at;
    const delivery = await deliveryOf(at);
    const { endpoint, event } = delivery;
    const [last] = await attemptsOf(endpoint, event);
    const inputs = new Inputs(here.entered);
    await inputs.attempt(undefined, () =>
      people.audited(here.actor, async (transaction) => [
        await fanOut.redeliver(application.id, event.id, endpoint.id, transaction),
        { ...endpointDeed(endpoint, 'redelivered an event'), subject: `${event.type} ${event.id}` },
      ]),
    );
    if (inputs.isFaulty) return show(at, delivery, inputs);
    const path = deliveryPath(application.id, endpoint.id, event.id);
    return seeOther(here.reply, `${path}?since=${last?.id ?? firstIdAt('whc', 0)}`);
  });
}
