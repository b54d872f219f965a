import type { JSX } from 'preact';
import type { Invitation } from '../../people/invitations.ts';
import { Lead } from '../../wizard/pages/parts.tsx';
import type { FormProps } from '../here.ts';
import type { Fault } from '../inputs.ts';
import { EmailField, NewPasswordField, TextField } from './fields.tsx';
import { FaultSummary, FormOf } from './forms.tsx';
import { CardLayout, roleName } from './layout.tsx';

interface JoinPageProps {
  readonly form: FormProps;
  readonly invitation: Invitation;
  readonly organization: string;
  readonly name: string;
  readonly email: string;
  readonly faults: readonly Fault[];
}

const TITLES = { setup: 'Set up your login', operator: 'Set up a login', member: 'Join your organization' };

/** The page of a link by which a person becomes a member. */
export function JoinPage({ form, invitation, organization, name, email, faults }: JoinPageProps): JSX.Element {
  const title = TITLES[invitation.kind];
  return (
    <CardLayout title={title} faulty={faults.length > 0}>
      <FaultSummary faults={faults} />
      <Lead title={title}>
        <p>
          You become {roleName(invitation.role)} of {organization}. This link works once.
          {invitation.kind === 'operator'
            ? ' If a login with your address exists, it becomes an Owner with the password that you enter here.'
            : ''}
        </p>
      </Lead>
      <FormOf {...form}>
        <TextField name="name" label="Your name" autocomplete="name" value={name} faults={faults} />
        <EmailField value={email} faults={faults} />
        <NewPasswordField hint="A sentence of some words is easy to remember." faults={faults} />
        <button type="submit">Create the login</button>
      </FormOf>
    </CardLayout>
  );
}
