import type { FastifyReply } from 'fastify';
import { actionOnRole, MEMBER_ROLES, type MemberRole } from '../domain/member-roles.ts';
import { SECOND_FACTOR_FOR } from '../domain/second-factor.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { MemberChange } from '../people/members.ts';
import type { Rooms } from '../rooms.ts';
import { seeOther, sendPage } from './answers.tsx';
import { forbid, type Here, NEW_ID_FIELD, unknown } from './here.ts';
import { Inputs } from './inputs.ts';
import { InvitationPage } from './pages/invitation-page.tsx';
import { MembersPage } from './pages/members-page.tsx';
import { joinPath, PATHS } from './paths.ts';
import { originOf, type Router } from './router.ts';

const MESSAGES: Readonly<Record<string, string>> = {
  role: 'The role is changed.',
  removed: 'The member is removed, and signed out everywhere.',
  'signed-out': 'The member is signed out everywhere.',
  reset: 'The second factor is reset, and the member is signed out everywhere.',
  required: 'It is changed for whom a second factor is required.',
  withdrawn: 'The invitation is withdrawn. Its link does not work any more.',
  renamed: 'The organization is renamed.',
};

/** Members, invitations, and the organization itself. */
export function memberRoutes(router: Router, rooms: Rooms): void {
  const { people, clock } = rooms;

  /** Whether a person may give a role, or take it away. */
  const mayTouch =
    (here: Here) =>
    (role: MemberRole): boolean =>
      here.may(actionOnRole(role));

  async function show(here: Here, inputs: Inputs): Promise<FastifyReply> {
    const page = (
      <MembersPage
        here={here}
        members={await people.members.list(here.organization.id)}
        invitations={await people.invitations.list(here.organization.id)}
        roles={MEMBER_ROLES.filter(mayTouch(here))}
        inputs={inputs}
        done={here.messageIn(MESSAGES)}
        nowMs={clock()}
      />
    );
    return sendPage(here.reply, page, inputs.isFaulty ? 422 : 200);
  }

  const back = ({ reply }: Here, done: string): FastifyReply => seeOther(reply, `${PATHS.members}?done=${done}`);

  async function answer(here: Here, change: MemberChange, done: string): Promise<FastifyReply> {
    if (change === 'forbidden') forbid();
    if (change === 'unknown') unknown();
    if (change === 'changed') return back(here, done);
    const inputs = new Inputs(new Map());
    inputs.fault(undefined, 'This is the last Owner. Make another member an Owner first.');
    return show(here, inputs);
  }

  router.page(PATHS.members, 'read members', (here) => show(here, new Inputs(here.entered)));

  router.form(PATHS.invitations, 'manage members', async (here) => {
    const inputs = new Inputs(here.entered);
    const label = inputs.name('label', 'whom the link is for');
    const role = inputs.choice('role', MEMBER_ROLES);
    // A person who sends a role that the form does not offer gets no second chance.
    if (role !== undefined && !mayTouch(here)(role)) forbid();
    if (inputs.isFaulty || role === undefined) return show(here, inputs);
    const token = await people.invitations.create(here.actor, { id: inputs.raw(NEW_ID_FIELD), role, label });
    const link = originOf(rooms, here.request) + joinPath(token);
    return sendPage(here.reply, <InvitationPage here={here} label={label} role={role} link={link} />);
  });

  router.form(`${PATHS.invitations}/:id/withdraw`, 'manage members', async (here) => {
    const result = await people.invitations.withdraw(here.actor, idOf(here), mayTouch(here));
    if (result === 'forbidden') forbid();
    if (result === 'unknown') unknown();
    return back(here, 'withdrawn');
  });

  router.form(`${PATHS.members}/:id/role`, 'manage members', async (here) => {
    const role = new Inputs(here.entered).choice('role', MEMBER_ROLES);
    if (role === undefined) throw new ServiceError(422, 'errors/unprocessable_entity', 'There is no such role.');
    if (!mayTouch(here)(role)) forbid();
    return answer(here, await people.members.setRole(here.actor, idOf(here), role, mayTouch(here)), 'role');
  });

  router.form(`${PATHS.members}/:id/remove`, 'manage members', async (here) =>
    answer(here, await people.members.remove(here.actor, idOf(here), mayTouch(here)), 'removed'),
  );

  router.form(`${PATHS.members}/:id/sign-out`, 'manage members', async (here) =>
    answer(here, await people.members.signOut(here.actor, idOf(here), mayTouch(here)), 'signed-out'),
  );

  router.form(`${PATHS.members}/:id/reset-second-factor`, 'manage members', async (here) => {
    // The own factor needs the password and a code.
    if (idOf(here) === here.member.id) forbid();
    return answer(here, await people.members.resetSecondFactor(here.actor, idOf(here), mayTouch(here)), 'reset');
  });

  router.form(PATHS.requireSecondFactor, 'require second factor', async (here) => {
    const inputs = new Inputs(here.entered);
    const work = inputs.choice('second_factor_for', SECOND_FACTOR_FOR);
    if (work === undefined) return show(here, inputs);
    await people.organizations.requireSecondFactor(here.actor, work);
    return back(here, 'required');
  });

  router.form(PATHS.organization, 'manage organization', async (here) => {
    const inputs = new Inputs(here.entered);
    const name = inputs.name('organization', 'a name');
    if (inputs.isFaulty) return show(here, inputs);
    await people.organizations.rename(here.actor, name);
    return back(here, 'renamed');
  });
}

const idOf = ({ request }: Here): string => (request.params as { readonly id: string }).id;
