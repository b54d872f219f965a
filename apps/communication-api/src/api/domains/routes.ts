import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { ServiceError } from '../../domain/service-error.ts';
import type { Domain } from '../../domains/domains.ts';
import type { Rooms } from '../../rooms.ts';
import { callerOf, requireServiceKey } from '../authenticate.ts';
import { listAnswer, listOf, pageOf, pageQuery } from '../page.ts';
import { problems } from '../problem.ts';
import { addDomain, checkTaken } from './custom-domain.ts';

const purpose = z
  .enum(['auth', 'tracking'])
  .describe('auth: a host of the wizard. tracking: a host of the links and pixels in tracked emails.');

const example = {
  object: 'Domain' as const,
  id: 'dom_01kaj6q2m0e7r8s9t0v1w2x3y4',
  application_id: 'app_01kaj6q2m0e7r8s9t0v1w2x3y4',
  host: 'connect.app.example',
  purpose: 'auth' as const,
  status: 'pending' as const,
  records: [
    { type: 'CNAME' as const, name: 'connect.app.example', value: 'auth.example.com', status: 'found' as const },
    {
      type: 'TXT' as const,
      name: '_communication-api.connect.app.example',
      value: 'ca-verify=4f8a1c0e6b7d4a5c9e3f2b1a0d8c7e6f',
      status: 'missing' as const,
    },
  ],
  checked_at: '2026-11-22T12:05:00.000Z',
  created_at: '2026-11-22T12:00:00.000Z',
};

const domainAnswer = z
  .object({
    object: z.literal('Domain'),
    id: z.string(),
    application_id: z.string(),
    host: z.string(),
    purpose,
    status: z
      .enum(['pending', 'verified', 'failing'])
      .describe(
        'failing: a record was missing on three days in a row. New links use the default host until they are back.',
      ),
    records: z
      .array(
        z.object({
          type: z.enum(['CNAME', 'TXT']),
          name: z.string(),
          value: z.string(),
          status: z.enum(['unchecked', 'found', 'missing']).describe('At the last check.'),
        }),
      )
      .describe('The DNS records to create.'),
    checked_at: z.iso.datetime().nullable(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Domain', examples: [example] });

const deletedDomain = z
  .object({ object: z.literal('DomainDeleted'), id: z.string() })
  .meta({ id: 'DomainDeleted', examples: [{ object: 'DomainDeleted', id: example.id }] });

const newDomain = z
  .strictObject({ host: z.string().min(1).max(253).describe('A host name below a domain of yours.'), purpose })
  .meta({ id: 'DomainRequest', examples: [{ host: 'connect.app.example', purpose: 'auth' }] });

const params = z.strictObject({ domain_id: z.string() });

/** Custom domains. Only service keys reach them. */
export const domainRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  const { domains, domainChecks } = rooms;
  const tags = ['Domains'];
  app.addHook('onRequest', requireServiceKey);

  const shown = (domain: Domain): z.output<typeof domainAnswer> => {
    const { id, application_id, host, purpose, status, checked_at, created_at } = domain;
    const records = [...domainChecks.checkedRecordsOf(domain)];
    return {
      object: 'Domain',
      ...{ id, application_id, host, purpose, status, records },
      checked_at: checked_at?.toISOString() ?? null,
      created_at: created_at.toISOString(),
    };
  };

  app.post(
    '/v2/domains',
    {
      schema: {
        operationId: 'createDomain',
        summary: 'Add a custom domain',
        description: 'Create the DNS records of the answer, then verify the domain.',
        tags,
        body: newDomain,
        response: { 200: domainAnswer, ...problems(409) },
      },
    },
    async (request) => {
      const { host, purpose } = request.body;
      const { applicationId } = callerOf(request);
      return shown(await addDomain(rooms, host, (name) => domains.create(applicationId, name, purpose)));
    },
  );

  app.get(
    '/v2/domains',
    {
      schema: {
        operationId: 'listDomains',
        summary: 'List custom domains',
        tags,
        querystring: z.strictObject(pageQuery),
        response: { 200: listOf('DomainList', domainAnswer) },
      },
    },
    async (request) => {
      const page = pageOf(request.query);
      const rows = await domains.list(callerOf(request).applicationId, page);
      return listAnswer('DomainList', rows, page, shown);
    },
  );

  app.get(
    '/v2/domains/:domain_id',
    {
      schema: {
        operationId: 'getDomain',
        summary: 'Get a custom domain',
        tags,
        params,
        response: { 200: domainAnswer, ...problems(404) },
      },
    },
    async (request) => shown(known(await domains.find(callerOf(request).applicationId, request.params.domain_id))),
  );

  app.post(
    '/v2/domains/:domain_id/verify',
    {
      schema: {
        operationId: 'verifyDomain',
        summary: 'Check the DNS records of a custom domain now',
        description:
          'If both records are found, the domain is verified. Otherwise its status stays as it is, and `records` says what is missing.',
        tags,
        params,
        response: { 200: domainAnswer, ...problems(404, 409) },
      },
    },
    async (request) => {
      const domain = known(await domains.find(callerOf(request).applicationId, request.params.domain_id));
      return shown(known(checkTaken(await domainChecks.verify(domain))));
    },
  );

  app.delete(
    '/v2/domains/:domain_id',
    {
      schema: {
        operationId: 'deleteDomain',
        summary: 'Delete a custom domain',
        description:
          'Links of the wizard on this host stop working. So do the links of tracked emails, if DNS leads elsewhere.',
        tags,
        params,
        response: { 200: deletedDomain, ...problems(404) },
      },
    },
    async (request) => {
      const id = request.params.domain_id;
      if (!(await domains.remove(callerOf(request).applicationId, id))) throw unknownDomain();
      return { object: 'DomainDeleted' as const, id };
    },
  );
};

const unknownDomain = (): ServiceError =>
  new ServiceError(404, 'errors/invalid_resource_identifier', 'No domain of your application has this id.');

/** @throws ServiceError 404 if the domain does not exist */
function known(domain: Domain | undefined): Domain {
  if (domain === undefined) throw unknownDomain();
  return domain;
}
