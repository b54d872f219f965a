import type { ComponentChildren, JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import { type ApplicationAction, mayInApplication } from '../../domain/member-roles.ts';
import type { Here } from '../here.ts';
import { applicationPath, PATHS } from '../paths.ts';
import { Layout } from './layout.tsx';
import { PartLinks } from './part-links.tsx';
import { EnvironmentBadge } from './parts.tsx';

interface Part {
  readonly name: string;
  readonly label: string;
  /** The path below the path of the application. */
  readonly below: string | undefined;
  readonly action: ApplicationAction;
}

const PARTS = [
  { name: 'keys', label: 'Keys', below: undefined, action: 'read application' },
  { name: 'accounts', label: 'Accounts', below: 'accounts', action: 'read accounts' },
  { name: 'emails', label: 'Emails', below: 'emails', action: 'read emails' },
  { name: 'limits', label: 'Limits', below: 'limits', action: 'read limits' },
  { name: 'webhooks', label: 'Webhooks', below: 'webhooks', action: 'read webhooks' },
  { name: 'scopes', label: 'Scopes', below: 'scopes', action: 'read scopes' },
] as const satisfies readonly Part[];

interface ApplicationLayoutProps {
  readonly here: Here;
  readonly application: Application;
  readonly title: string;
  /** The part of the application that the page is in. */
  readonly part: (typeof PARTS)[number]['name'];
  /** Whether the page shows faults. */
  readonly faulty?: boolean | undefined;
  readonly children: ComponentChildren;
}

/** A page about one application. */
export const ApplicationLayout = ({
  here,
  application,
  title,
  part,
  faulty,
  children,
}: ApplicationLayoutProps): JSX.Element => (
  <Layout here={here} title={title} part="applications" faulty={faulty}>
    <div class="where">
      <p class="crumb">
        <a href={PATHS.applications}>Applications</a>
        <span aria-hidden="true">/</span>
        <a href={applicationPath(application.id)}>{application.name}</a>
        <EnvironmentBadge environment={application.environment} />
      </p>
      <nav aria-label={`Application ${application.name}`} class="tabs">
        <PartLinks
          parts={PARTS.filter(({ action }) => mayInApplication(here.member.role, action, application.environment)).map(
            ({ name, label, below }) => ({ name, label, href: applicationPath(application.id, below) }),
          )}
          current={part}
        />
      </nav>
    </div>
    {children}
  </Layout>
);
