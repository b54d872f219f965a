import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { Here } from '../here.ts';
import type { Fault } from '../inputs.ts';
import type { Listed } from '../list-page.ts';
import { applicationPath, PATHS } from '../paths.ts';
import { SelectField, TextField } from './fields.tsx';
import { FaultSummary, FormOf } from './forms.tsx';
import { Layout } from './layout.tsx';
import { Day, EnvironmentBadge, Older } from './parts.tsx';

interface ApplicationsPageProps {
  readonly here: Here;
  readonly applications: Listed<Application>;
  readonly name: string;
  readonly environment: string;
  readonly faults: readonly Fault[];
}

export const ApplicationsPage = (props: ApplicationsPageProps): JSX.Element => {
  const { here, applications, name, environment, faults } = props;
  return (
    <Layout here={here} title="Applications" part="applications" faulty={faults.length > 0}>
      <FaultSummary faults={faults} />
      <h1>Applications</h1>
      {applications.rows.length === 0 ? <p class="soft">There is no application yet.</p> : null}
      <ul class="rows">
        {applications.rows.map((application) => (
          <li key={application.id}>
            <div class="what">
              <a class="title" href={applicationPath(application.id)}>
                {application.name}
              </a>
              <EnvironmentBadge environment={application.environment} />
            </div>
            <p class="soft">
              <code>{application.id}</code>, created on <Day at={application.created_at} />
            </p>
          </li>
        ))}
      </ul>
      <Older href={applications.next} label="Older applications" />
      {here.may('create applications') ? (
        <section class="panel">
          <h2>Create an application</h2>
          <FormOf {...here.form(PATHS.applications)}>
            <TextField
              name="name"
              label="Name"
              value={name}
              hint="Your users see it when they link a mailbox."
              faults={faults}
            />
            <SelectField
              name="environment"
              label="Environment"
              value={environment}
              hint="It cannot be changed later. Development has the mock provider, and Members manage its account keys."
              options={[
                { value: 'development', label: 'Development' },
                { value: 'production', label: 'Production' },
              ]}
              faults={faults}
            />
            <button type="submit">Create the application</button>
          </FormOf>
        </section>
      ) : null}
    </Layout>
  );
};
