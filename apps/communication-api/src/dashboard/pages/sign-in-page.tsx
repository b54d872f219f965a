import type { JSX } from 'preact';
import { Lead } from '../../wizard/pages/parts.tsx';
import type { FormProps } from '../here.ts';
import type { Fault } from '../inputs.ts';
import { EmailField, PasswordField } from './fields.tsx';
import { FaultSummary, FormOf } from './forms.tsx';
import { CardLayout } from './layout.tsx';

interface SignInPageProps {
  readonly form: FormProps;
  /** The page to which it leads. */
  readonly next: string;
  /** Whether there is a login. */
  readonly hasOwner: boolean;
  readonly email: string;
  readonly faults: readonly Fault[];
}

export const SignInPage = ({ form, next, hasOwner, email, faults }: SignInPageProps): JSX.Element => (
  <CardLayout title="Sign in" faulty={faults.length > 0}>
    <FaultSummary faults={faults} />
    <Lead title="Sign in">
      {hasOwner ? null : (
        <p>
          There is no login yet. Open the link that the start of the service has printed, or let the command{' '}
          <code>create-owner-link</code> print a new one.
        </p>
      )}
    </Lead>
    <FormOf {...form}>
      <input type="hidden" name="next" value={next} />
      <EmailField value={email} faults={faults} />
      <PasswordField faults={faults} />
      <button type="submit">Sign in</button>
    </FormOf>
  </CardLayout>
);
