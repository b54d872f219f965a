import type { Rooms } from '../rooms.ts';
import { seeOther, sendPage } from './answers.tsx';
import type { Here } from './here.ts';
import { Inputs } from './inputs.ts';
import { LoginPage } from './pages/login-page.tsx';
import { PATHS } from './paths.ts';
import { type Router, setCookie } from './router.ts';
import type { SignInLimit } from './sign-in-limit.ts';

/** The login of the person: the password, and signing out. */
export function loginRoutes(router: Router, rooms: Rooms, limit: SignInLimit): void {
  const { members, sessions } = rooms.people;

  const show = (here: Here, inputs: Inputs) => {
    const isDone = 'done' in (here.request.query as object);
    const page = <LoginPage here={here} faults={inputs.faults} isDone={isDone} />;
    return sendPage(here.reply, page, inputs.isFaulty ? 422 : 200);
  };

  router.page(PATHS.login, 'own login', async (here) => show(here, new Inputs(here.entered)));

  router.form(PATHS.login, 'own login', async (here) => {
    const inputs = new Inputs(here.entered);
    const next = inputs.newPassword('new_password');
    if (inputs.isFaulty) return show(here, inputs);
    // A browser that was left open must not be a way to guess the password.
    await limit.checkLogin(here.member.email);
    if (!(await members.changePassword(here.member, inputs.raw('password'), next, here.sessionId))) {
      inputs.fault('password', 'The current password is wrong.');
      return show(here, inputs);
    }
    await limit.forgive(here.member.email);
    return seeOther(here.reply, `${PATHS.login}?done`);
  });

  router.form(PATHS.signOut, 'set-up', async ({ request, reply, sessionId }) => {
    await sessions.end(sessionId);
    setCookie(rooms, request, reply, 'dashboard', '');
    return seeOther(reply, PATHS.signIn);
  });
}
