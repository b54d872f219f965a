import type { JSX } from 'preact';
import { Lead } from '../../wizard/pages/parts.tsx';
import type { FormProps } from '../here.ts';
import type { Fault } from '../inputs.ts';
import { PATHS } from '../paths.ts';
import { CodeField, TextField } from './fields.tsx';
import { FaultSummary, FormOf } from './forms.tsx';
import { CardLayout } from './layout.tsx';

interface SignInCodePageProps {
  readonly form: FormProps;
  readonly faults: readonly Fault[];
}

/** The second step of a sign-in. */
export const SignInCodePage = ({ form, faults }: SignInCodePageProps): JSX.Element => (
  <CardLayout title="Enter your code" faulty={faults.length > 0}>
    <FaultSummary faults={faults} />
    <Lead title="Enter your code">
      <p>Your authenticator app shows six digits for your login.</p>
    </Lead>
    <FormOf {...form}>
      <CodeField name="code" label="Code" faults={faults} />
      <button type="submit">Sign in</button>
    </FormOf>
    <details open={faults.some(({ field }) => field === 'recovery_code')}>
      <summary>Use a recovery code</summary>
      <div class="inside">
        <FormOf {...form}>
          <TextField
            name="recovery_code"
            label="Recovery code"
            hint="It works once. If you have none, an Admin or an Owner can reset your second factor."
            faults={faults}
          />
          <button type="submit">Sign in with the recovery code</button>
        </FormOf>
      </div>
    </details>
    <p>
      <a href={PATHS.signIn}>Sign in with another login</a>
    </p>
  </CardLayout>
);
