import type { FastifyReply } from 'fastify';
import { mayInApplication } from '../domain/member-roles.ts';
import type { Rooms } from '../rooms.ts';
import type { Scope, ScopeText } from '../scopes/scopes.ts';
import { seeOther, sendPage } from './answers.tsx';
import { type HereInApplication, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { listed, pageAsked } from './list-page.ts';
import { ScopePage } from './pages/scope-page.tsx';
import { ScopesPage } from './pages/scopes-page.tsx';
import { applicationPath, scopePath } from './paths.ts';
import type { Router } from './router.ts';

const LIST = applicationPath(':application', 'scopes');
const ONE = scopePath(':application', ':scope');
const MESSAGES: Readonly<Record<string, string>> = {
  created: 'The scope is created. Create a key of it, or link an account into it.',
  changed: 'The scope is changed.',
  disabled: 'The scope is disabled. Its keys are refused until it is enabled.',
  enabled: 'The scope is enabled. Its keys work again.',
  deleted: 'The scope is deleted, and its keys are revoked.',
};

const textIn = (inputs: Inputs): ScopeText => ({
  name: inputs.name('name', 'a name'),
  reference: inputs.optionalName('reference'),
});

/** The scopes of an application: groups of its accounts. */
export function scopeRoutes(router: Router, { scopes, keys, people }: Rooms): void {
  const canManage = ({ here, application }: HereInApplication): boolean =>
    mayInApplication(here.member.role, 'manage scopes', application.environment);

  async function scopeOf({ here, application }: HereInApplication): Promise<Scope> {
    const { scope: id } = here.request.params as { readonly scope: string };
    return (await scopes.find(application.id, id)) ?? unknown();
  }

  async function showList(at: HereInApplication, inputs: Inputs): Promise<FastifyReply> {
    const { here, application } = at;
    const list = listed(await scopes.list(application.id, pageAsked(here.request.query, 'before', 'scp')), 'before');
    const uses = await scopes.usesOf(
      application.id,
      list.rows.map(({ id }) => id),
    );
    const page = (
      <ScopesPage
        here={here}
        application={application}
        canManage={canManage(at)}
        scopes={list}
        uses={uses}
        inputs={inputs}
        done={here.messageIn(MESSAGES)}
      />
    );
    return sendPage(here.reply, page, inputs.isFaulty ? inputs.status : 200);
  }

  async function showOne(at: HereInApplication, scope: Scope, inputs?: Inputs): Promise<FastifyReply> {
    const { here, application } = at;
    const page = (
      <ScopePage
        here={here}
        application={application}
        scope={scope}
        use={(await scopes.usesOf(application.id, [scope.id])).get(scope.id) ?? { accounts: 0, keys: 0 }}
        canManage={canManage(at)}
        inputs={inputs}
        done={here.messageIn(MESSAGES)}
      />
    );
    return sendPage(here.reply, page, inputs?.status ?? 200);
  }

  const deedOn = ({ id, name, application_id }: Scope) => ({
    subject: name,
    subjectId: id,
    applicationId: application_id,
  });

  router.applicationPage(LIST, 'read scopes', (at) => showList(at, new Inputs(at.here.entered)));

  router.applicationForm(LIST, 'manage scopes', async (at) => {
    const { here, application } = at;
    const inputs = new Inputs(here.entered);
    const text = textIn(inputs);
    if (inputs.isFaulty) return showList(at, inputs);
    const { id } = await people.audited(here.actor, async (transaction) => {
      const scope = await scopes.create(application.id, text, transaction);
      return [scope, { action: 'created a scope', ...deedOn(scope) }];
    });
    return seeOther(here.reply, `${scopePath(application.id, id)}?done=created`);
  });

  router.applicationPage(ONE, 'read scopes', async (at) => showOne(at, await scopeOf(at)));

  router.applicationForm(ONE, 'manage scopes', async (at) => {
    const { here, application } = at;
    const scope = await scopeOf(at);
    const inputs = new Inputs(here.entered);
    const text = textIn(inputs);
    if (inputs.isFaulty) return showOne(at, scope, inputs);
    const changed = await people.audited(here.actor, async (transaction) => {
      const row = await scopes.update(application.id, scope.id, text, transaction);
      return [row, row && { action: 'changed a scope', ...deedOn(row) }];
    });
    if (changed === undefined) return unknown();
    return seeOther(here.reply, `${scopePath(application.id, scope.id)}?done=changed`);
  });

  for (const [verb, status] of [
    ['enable', 'active'],
    ['disable', 'disabled'],
  ] as const)
    router.applicationForm(`${ONE}/${verb}`, 'manage scopes', async (at) => {
      const { here, application } = at;
      const { id } = await scopeOf(at);
      const changed = await people.audited(here.actor, async (transaction) => {
        const row = await scopes.setStatus(application.id, id, status, transaction);
        return [row, row && { action: `${verb}d a scope` as const, ...deedOn(row) }];
      });
      // A caller that was read before the end of the transaction shows the old state of the scope.
      keys.forgetResolved();
      if (changed === undefined) return unknown();
      return seeOther(here.reply, `${scopePath(application.id, id)}?done=${verb}d`);
    });

  router.applicationForm(`${ONE}/delete`, 'manage scopes', async (at) => {
    const { here, application } = at;
    const scope = await scopeOf(at);
    const result = await people.audited(here.actor, async (transaction) => {
      const removal = await scopes.remove(application.id, scope.id, transaction);
      return [removal, removal === 'removed' ? { action: 'deleted a scope', ...deedOn(scope) } : undefined];
    });
    keys.forgetResolved();
    if (result === 'unknown') return unknown();
    if (result === 'removed') return seeOther(here.reply, `${applicationPath(application.id, 'scopes')}?done=deleted`);
    const inputs = new Inputs(new Map());
    inputs.fault(undefined, 'The scope has accounts. Remove them first.', 409);
    return showOne(at, scope, inputs);
  });
}
