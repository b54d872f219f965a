import type { JSX } from 'preact';
import type { Here } from '../here.ts';
import type { Fault } from '../inputs.ts';
import { PATHS } from '../paths.ts';
import { NewPasswordField, PasswordField } from './fields.tsx';
import { FaultSummary, FormOf } from './forms.tsx';
import { LoginLayout } from './login-layout.tsx';
import { Done } from './parts.tsx';

interface LoginPageProps {
  readonly here: Here;
  readonly faults: readonly Fault[];
  readonly isDone: boolean;
}

/** The password of the person who looks at it. */
export const LoginPage = ({ here, faults, isDone }: LoginPageProps): JSX.Element => (
  <LoginLayout here={here} title="Your login" part="password" faulty={faults.length > 0}>
    <FaultSummary faults={faults} />
    <Done text={isDone ? 'The password is changed. Other browsers are signed out.' : undefined} />
    <h1>Your login</h1>
    <section class="panel" aria-labelledby="password">
      <h2 id="password">Change the password</h2>
      <FormOf {...here.form(PATHS.login)}>
        <PasswordField label="Current password" faults={faults} />
        <NewPasswordField
          name="new_password"
          label="New password"
          hint="Every other browser is signed out."
          faults={faults}
        />
        <button type="submit">Change the password</button>
      </FormOf>
    </section>
  </LoginLayout>
);
