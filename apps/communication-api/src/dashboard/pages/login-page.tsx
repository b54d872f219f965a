import type { JSX } from 'preact';
import type { Here } from '../here.ts';
import type { Fault } from '../inputs.ts';
import { PATHS } from '../paths.ts';
import { Layout, roleName } from './layout.tsx';
import { Done, FaultSummary, FormOf, TextField } from './parts.tsx';

interface LoginPageProps {
  readonly here: Here;
  readonly faults: readonly Fault[];
  readonly isDone: boolean;
}

/** The login of the person who looks at it. */
export const LoginPage = ({ here, faults, isDone }: LoginPageProps): JSX.Element => (
  <Layout here={here} title="Your login" part="login" faulty={faults.length > 0}>
    <FaultSummary faults={faults} />
    <Done text={isDone ? 'The password is changed. Other browsers are signed out.' : undefined} />
    <h1>Your login</h1>
    <p class="soft">
      {here.member.name}, {here.member.email}, {roleName(here.member.role)} of {here.organization.name}
    </p>
    <section class="panel" aria-labelledby="password">
      <h2 id="password">Change the password</h2>
      <FormOf {...here.form(PATHS.login)}>
        <TextField
          name="password"
          label="Current password"
          type="password"
          autocomplete="current-password"
          faults={faults}
        />
        <TextField
          name="new_password"
          label="New password"
          type="password"
          autocomplete="new-password"
          hint="At least 12 characters. Every other browser is signed out."
          faults={faults}
        />
        <button type="submit">Change the password</button>
      </FormOf>
    </section>
  </Layout>
);
