import type { Rooms } from '../rooms.ts';
import { sendPage } from './answers.tsx';
import { listed, pageAsked } from './list-page.ts';
import { AuditPage } from './pages/audit-page.tsx';
import { PATHS } from './paths.ts';
import type { Router } from './router.ts';

/** The page with the actions of people. */
export function auditRoutes(router: Router, { people }: Rooms): void {
  router.page(PATHS.audit, 'read audit log', async (here) => {
    const page = pageAsked(here.request.query, 'before', 'aud');
    const entries = listed(await people.audit.list(here.organization.id, page), 'before');
    return sendPage(here.reply, <AuditPage here={here} entries={entries} />);
  });
}
