import type { AuditAction, Deed } from '../people/audit-log.ts';
import type { Rooms } from '../rooms.ts';
import type { Endpoint } from '../webhooks/endpoints.ts';
import { type HereInApplication, unknown } from './here.ts';

/**
 * The endpoint that the path of a request names.
 * @throws UnknownPageError if the application owns no endpoint with this id
 */
export async function endpointOf(
  { endpoints }: Pick<Rooms, 'endpoints'>,
  { here, application }: HereInApplication,
): Promise<Endpoint> {
  const { endpoint: id } = here.request.params as { readonly endpoint: string };
  return (await endpoints.find(application.id, id)) ?? unknown();
}

/** The name of an endpoint for people. Its path and its query can contain a secret, so only its host is named. */
export const endpointName = ({ description, url }: Pick<Endpoint, 'description' | 'url'>): string =>
  description ?? new URL(url).host;

/** The entry of the audit log for an action on an endpoint. */
export const endpointDeed = (endpoint: Endpoint, action: AuditAction): Deed => ({
  action,
  subject: endpointName(endpoint),
  subjectId: endpoint.id,
  applicationId: endpoint.application_id,
});
