import type { JSX } from 'preact';
import type { MemberRole } from '../../domain/member-roles.ts';
import type { Here } from '../here.ts';
import { PATHS } from '../paths.ts';
import { Layout, roleName } from './layout.tsx';

interface InvitationPageProps {
  readonly here: Here;
  readonly label: string;
  readonly role: MemberRole;
  readonly link: string;
}

/** The only page that shows the link of an invitation. */
export const InvitationPage = ({ here, label, role, link }: InvitationPageProps): JSX.Element => (
  <Layout here={here} title="New invitation" part="members">
    <h1>New invitation</h1>
    <section class="panel">
      <p>
        With this link, <strong>{label}</strong> becomes {roleName(role)}. It works once, for seven days.
      </p>
      <p class="secret">
        <code>{link}</code>
      </p>
      <p>
        <strong>Copy it now: it is never shown again.</strong> Every person who has the link can use it.
      </p>
      <p>
        <a class="button" href={PATHS.members}>
          I have copied it
        </a>
      </p>
    </section>
  </Layout>
);
