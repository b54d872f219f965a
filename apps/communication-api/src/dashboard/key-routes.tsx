import type { FastifyReply } from 'fastify';
import { type ApplicationAction, mayInApplication } from '../domain/member-roles.ts';
import type { Page } from '../domain/page.ts';
import type { NewKey } from '../keys/keys.ts';
import type { Rooms } from '../rooms.ts';
import type { Scope } from '../scopes/scopes.ts';
import { seeOther, sendPage } from './answers.tsx';
import { type HereInApplication, NEW_ID_FIELD, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { listed, pageAsked } from './list-page.ts';
import { ApplicationPage } from './pages/application-page.tsx';
import { NewKeyPage } from './pages/new-key-page.tsx';
import { applicationPath } from './paths.ts';
import type { Router } from './router.ts';

/** Service keys and account keys use separate forms and permissions. */
export type KeyKind = 'service' | 'account';

const KINDS = ['service', 'account'] as const;
const MANAGE = { service: 'manage service keys', account: 'manage account keys' } as const;
const CREATED = { service: 'created a service key', account: 'created an account key' } as const;
const REVOKED = { service: 'revoked a service key', account: 'revoked an account key' } as const;
/** The access of a global account key, in the form. Other values are ids of scopes. */
export const GLOBAL = 'global';
/** Scopes to choose from. An application with more makes its keys by the API. */
const ALL_SCOPES: Page = { limit: 200, offset: 0, before: undefined };

/** A form for a new key, with its faults. */
export interface FaultyKey {
  readonly kind: KeyKind;
  readonly inputs: Inputs;
}

/** The page of an application, with its keys. */
export function keyRoutes(router: Router, { keys, scopes, people, clock }: Rooms): void {
  async function show({ here, application }: HereInApplication, faulty?: FaultyKey): Promise<FastifyReply> {
    const { query } = here.request;
    const may = (action: ApplicationAction): boolean =>
      mayInApplication(here.member.role, action, application.environment);
    const [serviceKeys, accountKeys, allScopes] = [
      may('read service keys')
        ? await keys.listServiceKeys(application.id, pageAsked(query, 'service_before', 'key'))
        : undefined,
      await keys.list(application.id, {}, pageAsked(query, 'account_before', 'key')),
      await scopes.list(application.id, ALL_SCOPES),
    ];
    const page = (
      <ApplicationPage
        here={here}
        application={application}
        may={may}
        serviceKeys={serviceKeys && listed(serviceKeys, 'service_before')}
        accountKeys={listed(accountKeys, 'account_before')}
        scopes={allScopes}
        faulty={faulty}
        nowMs={clock()}
        isRevoked={'revoked' in (query as object)}
      />
    );
    return sendPage(here.reply, page, faulty === undefined ? 200 : 422);
  }

  router.applicationPage(applicationPath(':application'), 'read application', (at) => show(at));

  for (const kind of KINDS) {
    router.applicationForm(applicationPath(':application', `${kind}-keys`), MANAGE[kind], async (at) => {
      const { here, application } = at;
      const inputs = new Inputs(here.entered);
      const name = inputs.name('name', 'a name');
      const expiresAt = inputs.expiry('expires_on', clock());
      const active = (await scopesToChoose(application.id)).map(({ id }) => id);
      const access = kind === 'service' ? GLOBAL : inputs.choice('access', [GLOBAL, ...active]);
      if (inputs.isFaulty || access === undefined) return show(at, { kind, inputs });
      const rights: Pick<NewKey, 'role' | 'scopeId'> =
        access === GLOBAL ? { role: kind, scopeId: null } : { role: 'scoped', scopeId: access };
      const id = inputs.raw(NEW_ID_FIELD);
      const { token } = await people.audited(here.actor, async (transaction) => {
        const made = await keys.create(
          application.id,
          application.environment,
          { id, name, expiresAt, ...rights },
          transaction,
        );
        return [made, { action: CREATED[kind], subject: name, subjectId: id, applicationId: application.id }];
      });
      const key = { name, kind, token, expiresAt };
      return sendPage(here.reply, <NewKeyPage here={here} application={application} newKey={key} />);
    });

    router.applicationForm(
      applicationPath(':application', `${kind}-keys/:key/revoke`),
      MANAGE[kind],
      async ({ here, application }) => {
        const { key: id } = here.request.params as { readonly key: string };
        const name = await people.audited(here.actor, async (transaction) => {
          const revoked = await keys.revokeKey(application.id, id, kind, transaction);
          const deed = { action: REVOKED[kind], subject: revoked ?? '', subjectId: id, applicationId: application.id };
          return [revoked, revoked === undefined ? undefined : deed];
        });
        // A caller that was read before the end of the transaction shows the old state of the key.
        keys.forgetResolved();
        if (name === undefined) return unknown();
        return seeOther(here.reply, `${applicationPath(application.id)}?revoked`);
      },
    );
  }

  const scopesToChoose = async (applicationId: string): Promise<readonly Scope[]> =>
    (await scopes.list(applicationId, ALL_SCOPES)).filter(({ status }) => status === 'active');
}
