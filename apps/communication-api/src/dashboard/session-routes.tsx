import type { Rooms } from '../rooms.ts';
import { seeOther, sendPage } from './answers.tsx';
import { unknown } from './here.ts';
import { SessionsPage } from './pages/sessions-page.tsx';
import { PATHS } from './paths.ts';
import type { Router } from './router.ts';

const MESSAGES: Readonly<Record<string, string>> = {
  ended: 'The session is ended.',
  others: 'All other sessions are ended.',
};

/** The sessions of the person. */
export function sessionRoutes(router: Router, rooms: Rooms): void {
  const { sessions } = rooms.people;

  router.page(PATHS.sessions, 'own login', async (here) => {
    const page = (
      <SessionsPage here={here} sessions={await sessions.list(here.member.id)} done={here.messageIn(MESSAGES)} />
    );
    return sendPage(here.reply, page);
  });

  router.form(`${PATHS.sessions}/:id/end`, 'own login', async (here) => {
    const { id } = here.request.params as { readonly id: string };
    if (!(await sessions.endOwn(here.member, id))) unknown();
    return seeOther(here.reply, `${PATHS.sessions}?done=ended`);
  });

  router.form(`${PATHS.sessions}/end-others`, 'own login', async (here) => {
    await sessions.endOthers(here.member, here.sessionId);
    return seeOther(here.reply, `${PATHS.sessions}?done=others`);
  });
}
