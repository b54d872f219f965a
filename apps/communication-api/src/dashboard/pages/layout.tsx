import type { ComponentChildren, JSX } from 'preact';
import { DASHBOARD_STYLESHEET } from '../../assets.ts';
import { initialOf } from '../../wizard/pages/layout.tsx';
import type { Here } from '../here.ts';
import { PATHS } from '../paths.ts';
import { FormOf } from './forms.tsx';
import { PartLinks } from './part-links.tsx';

interface DocumentProps {
  readonly title: string;
  /** Whether the page shows faults: the title says so, since a screen reader reads it first. */
  readonly faulty?: boolean | undefined;
  readonly children: ComponentChildren;
}

const Document = ({ title, faulty, children }: DocumentProps): JSX.Element => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="robots" content="noindex" />
      <title>{`${faulty === true ? 'Error: ' : ''}${title} – Communication API`}</title>
      <link rel="icon" href="data:," />
      <link rel="stylesheet" href={DASHBOARD_STYLESHEET.path} />
    </head>
    <body>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      {children}
    </body>
  </html>
);

/** A page with one card, for a person who is not signed in. */
export const CardLayout = ({ title, faulty, children }: DocumentProps): JSX.Element => (
  <Document title={title} faulty={faulty}>
    <header>
      <div class="who">
        <span class="tile" aria-hidden="true">
          C
        </span>
        <p>Communication API</p>
      </div>
    </header>
    <main id="main">
      <div class="card">{children}</div>
    </main>
  </Document>
);

const ROLE_NAMES = { member: 'Member', admin: 'Admin', owner: 'Owner' };

export const roleName = (role: keyof typeof ROLE_NAMES): string => ROLE_NAMES[role];

interface LayoutProps extends DocumentProps {
  readonly here: Here;
  /** The part of the dashboard that the page is in. */
  readonly part?: 'applications' | 'domains' | 'members' | 'audit' | 'login' | undefined;
}

/** A page of a person who is signed in. */
export function Layout({ here, title, faulty, part, children }: LayoutProps): JSX.Element {
  const { organization, member } = here;
  const parts = [
    { name: 'applications', label: 'Applications', href: PATHS.applications, isShown: here.may('list applications') },
    { name: 'domains', label: 'Domains', href: PATHS.domains, isShown: here.may('manage domains') },
    { name: 'members', label: 'Members', href: PATHS.members, isShown: here.may('read members') },
    { name: 'audit', label: 'Audit log', href: PATHS.audit, isShown: here.may('read audit log') },
  ].filter(({ isShown }) => isShown && !here.lacksSecondFactorFor('own login'));
  return (
    <Document title={title} faulty={faulty}>
      <header class="bar">
        <div class="across">
          <p class="organization">
            <span class="tile" aria-hidden="true">
              {initialOf(organization.name)}
            </span>
            {organization.name}
          </p>
          <nav aria-label="Dashboard">
            <PartLinks parts={parts} current={part} />
          </nav>
          <div class="person">
            <a href={PATHS.login} aria-current={part === 'login' ? 'page' : undefined}>
              {member.name} <span class="soft">{roleName(member.role)}</span>
            </a>
            <FormOf {...here.form(PATHS.signOut)}>
              <button type="submit" class="plain">
                Sign out
              </button>
            </FormOf>
          </div>
        </div>
      </header>
      <main id="main" class="wide">
        {children}
      </main>
    </Document>
  );
}
