import type { FastifyReply } from 'fastify';
import { addDomain, checkTaken } from '../api/domains/custom-domain.ts';
import type { Page } from '../domain/page.ts';
import type { Domain } from '../domains/domains.ts';
import type { Rooms } from '../rooms.ts';
import { seeOther, sendPage } from './answers.tsx';
import { type Here, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { listed, pageAsked } from './list-page.ts';
import { DomainsPage } from './pages/domains-page.tsx';
import { PATHS } from './paths.ts';
import type { Router } from './router.ts';

const MESSAGES: Readonly<Record<string, string>> = {
  added: 'The domain is added. Create its two DNS records, then check it.',
  removed: 'The domain is removed. Its DNS records can be deleted.',
};
const PURPOSES = ['auth', 'tracking'] as const;
/** Applications to choose from. More of them add their domains by the API. */
const ALL_APPLICATIONS: Page = { limit: 200, offset: 0, before: undefined };

/** The custom domains of all applications of the organization. */
export function domainRoutes(router: Router, rooms: Rooms): void {
  const { domains, domainChecks, applications, people } = rooms;

  async function domainOf({ request, organization }: Here): Promise<Domain> {
    const { id } = request.params as { readonly id: string };
    return (await domains.findIn(organization.id, id)) ?? unknown();
  }

  async function show(here: Here, inputs: Inputs): Promise<FastifyReply> {
    const { query } = here.request;
    const { checked: id } = query as { readonly checked?: unknown };
    const list = listed(await domains.listIn(here.organization.id, pageAsked(query, 'before', 'dom')), 'before');
    const page = (
      <DomainsPage
        here={here}
        domains={list}
        recordsOf={(domain) => domainChecks.checkedRecordsOf(domain)}
        applications={await applications.list(here.organization.id, ALL_APPLICATIONS)}
        checked={typeof id === 'string' ? await domains.findIn(here.organization.id, id) : undefined}
        inputs={inputs}
        done={here.messageIn(MESSAGES)}
      />
    );
    return sendPage(here.reply, page, inputs.isFaulty ? inputs.status : 200);
  }

  const deedOn = ({ id, application_id }: Domain, subject: string) => ({
    subject,
    subjectId: id,
    applicationId: application_id,
  });

  router.page(PATHS.domains, 'manage domains', (here) => show(here, new Inputs(here.entered)));

  router.form(PATHS.domains, 'manage domains', async (here) => {
    const inputs = new Inputs(here.entered);
    const application = await applications.findIn(here.organization.id, inputs.raw('application'));
    if (application === undefined) inputs.fault('application', 'Choose one of these.');
    const purpose = inputs.choice('purpose', PURPOSES);
    if (application === undefined || purpose === undefined) return show(here, inputs);
    const text = inputs.raw('host').trim();
    const added = await inputs.attempt('host', () =>
      people.audited(here.actor, async (transaction) => {
        const create = (host: string) => domains.create(application.id, host, purpose, transaction);
        const domain = await addDomain(rooms, text, create);
        return [domain, { action: 'added a domain', ...deedOn(domain, domain.host) }];
      }),
    );
    return added === undefined ? show(here, inputs) : seeOther(here.reply, `${PATHS.domains}?done=added`);
  });

  router.form(`${PATHS.domains}/:id/check`, 'manage domains', async (here) => {
    const domain = await domainOf(here);
    const inputs = new Inputs(here.entered);
    // Name servers are asked before the transaction begins.
    const missing = await domainChecks.missingOf(domain);
    const checked = await inputs.attempt(undefined, () =>
      people.audited(here.actor, async (transaction) => {
        const row = checkTaken(await domainChecks.store(domain, missing, transaction));
        return [row, row && { action: 'checked a domain', ...deedOn(row, `${row.host} (${row.status})`) }];
      }),
    );
    if (inputs.isFaulty) return show(here, inputs);
    if (checked === undefined) return unknown();
    return seeOther(here.reply, `${PATHS.domains}?checked=${domain.id}`);
  });

  router.form(`${PATHS.domains}/:id/remove`, 'manage domains', async (here) => {
    const domain = await domainOf(here);
    await people.audited(here.actor, async (transaction) => {
      const isDone = await domains.remove(domain.application_id, domain.id, transaction);
      return [isDone, isDone ? { action: 'removed a domain', ...deedOn(domain, domain.host) } : undefined];
    });
    return seeOther(here.reply, `${PATHS.domains}?done=removed`);
  });
}
