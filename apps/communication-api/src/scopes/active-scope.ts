import type { Database } from '../db/database.ts';
import { isId } from '../domain/ids.ts';
import { ServiceError } from '../domain/service-error.ts';

/**
 * Checks that a scope is active, and locks it, so that no other request can disable or delete it before the transaction
 * ends.
 * @param transaction in which the scope is about to be used
 * @throws ServiceError 404 if the scope does not exist in the application, 422 if it is disabled
 */
export async function lockActiveScope(applicationId: string, id: string, transaction: Database): Promise<void> {
  const scope = isId(id, 'scp')
    ? await transaction
        .selectFrom('scopes')
        .select('status')
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .forShare()
        .executeTakeFirst()
    : undefined;
  if (scope === undefined)
    throw new ServiceError(404, 'errors/invalid_resource_identifier', 'No scope of your application has this id.');
  if (scope.status !== 'active')
    throw new ServiceError(422, 'errors/unprocessable_entity', 'The scope is disabled. Enable it first.');
}
