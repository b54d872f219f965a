import type { Rooms } from '../rooms.ts';
import { seeOther, sendPage } from './answers.tsx';
import type { Here } from './here.ts';
import { Inputs } from './inputs.ts';
import { listed, pageAsked } from './list-page.ts';
import { ApplicationsPage } from './pages/applications-page.tsx';
import { applicationPath, PATHS } from './paths.ts';
import type { Router } from './router.ts';

const ENVIRONMENTS = ['development', 'production'] as const;

/** The list of applications, and new ones. */
export function applicationRoutes(router: Router, { applications, people }: Rooms): void {
  async function show(here: Here, inputs: Inputs) {
    const rows = await applications.list(here.organization.id, pageAsked(here.request.query, 'before', 'app'));
    const page = (
      <ApplicationsPage
        here={here}
        applications={listed(rows, 'before')}
        name={inputs.raw('name')}
        environment={inputs.raw('environment')}
        faults={inputs.faults}
      />
    );
    return sendPage(here.reply, page, inputs.isFaulty ? 422 : 200);
  }

  router.page(PATHS.applications, 'list applications', (here) => show(here, new Inputs(here.entered)));

  router.form(PATHS.applications, 'create applications', async (here) => {
    const inputs = new Inputs(here.entered);
    const name = inputs.name('name', 'a name');
    const environment = inputs.choice('environment', ENVIRONMENTS);
    if (inputs.isFaulty || environment === undefined) return show(here, inputs);
    const application = await people.audited(here.actor, async (transaction) => {
      const created = await applications.create(name, environment, here.organization.id, transaction);
      const subject = `${name} (${environment})`;
      return [created, { action: 'created an application', subject, subjectId: created.id, applicationId: created.id }];
    });
    return seeOther(here.reply, applicationPath(application.id));
  });
}
