import type { ComponentChildren, JSX } from 'preact';
import type { Here } from '../here.ts';
import { PATHS } from '../paths.ts';
import { Layout, roleName } from './layout.tsx';
import { PartLinks } from './part-links.tsx';

const PARTS = [
  { name: 'password', label: 'Password', href: PATHS.login },
  { name: 'second factor', label: 'Second factor', href: PATHS.secondFactor },
  { name: 'sessions', label: 'Sessions', href: PATHS.sessions },
] as const;

interface LoginLayoutProps {
  readonly here: Here;
  readonly title: string;
  readonly part: (typeof PARTS)[number]['name'];
  /** Whether the page shows faults. */
  readonly faulty?: boolean | undefined;
  readonly children: ComponentChildren;
}

/** A page about the login of the person who looks at it. */
export const LoginLayout = ({ here, title, part, faulty, children }: LoginLayoutProps): JSX.Element => (
  <Layout here={here} title={title} part="login" faulty={faulty}>
    <div class="where">
      <p class="soft">
        {here.member.name}, {here.member.email}, {roleName(here.member.role)} of {here.organization.name}
      </p>
      {here.lacksSecondFactorFor('own login') ? null : (
        <nav aria-label="Your login" class="tabs">
          <PartLinks parts={PARTS} current={part} />
        </nav>
      )}
    </div>
    {children}
  </Layout>
);
