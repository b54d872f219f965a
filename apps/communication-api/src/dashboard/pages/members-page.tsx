import type { JSX } from 'preact';
import { newId } from '../../domain/ids.ts';
import type { MemberRole } from '../../domain/member-roles.ts';
import type { SecondFactorFor } from '../../domain/second-factor.ts';
import type { Invitation } from '../../people/invitations.ts';
import type { ListedMember } from '../../people/members.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import { PATHS } from '../paths.ts';
import { SelectField, TextField } from './fields.tsx';
import { AskedButton, FaultSummary, FormOf } from './forms.tsx';
import { Layout, roleName } from './layout.tsx';
import { Badge, Day, Done, Time } from './parts.tsx';

interface MembersPageProps {
  readonly here: Here;
  readonly members: readonly ListedMember[];
  readonly invitations: readonly Invitation[];
  /** The roles that the person may give and take away. */
  readonly roles: readonly MemberRole[];
  /** The entered values, with their faults. */
  readonly inputs: Inputs;
  readonly done: string | undefined;
  readonly nowMs: number;
}

export function MembersPage(props: MembersPageProps): JSX.Element {
  const { here, members, invitations, inputs, done } = props;
  return (
    <Layout here={here} title="Members" part="members" faulty={inputs.isFaulty}>
      <FaultSummary faults={inputs.faults} />
      <Done text={done} />
      <h1>Members</h1>
      <ul class="rows">
        {members.map((member) => (
          <MemberRow key={member.id} {...props} member={member} />
        ))}
      </ul>
      <section aria-labelledby="invitations">
        <h2 id="invitations">Invitations</h2>
        {invitations.length === 0 ? <p class="empty">There is no open invitation.</p> : null}
        <ul class="rows">
          {invitations.map((invitation) => (
            <InvitationRow key={invitation.id} {...props} invitation={invitation} />
          ))}
        </ul>
        <InviteForm {...props} />
      </section>
      {here.may('require second factor') ? (
        <section class="panel" aria-labelledby="second-factor">
          <h2 id="second-factor">Second factor</h2>
          <p class="soft">
            {members.filter(({ hasSecondFactor }) => hasSecondFactor).length} of {members.length} members have one.
            Members without it are led to its set-up before they can go on. API keys are not affected.
          </p>
          <FormOf {...here.form(PATHS.requireSecondFactor)}>
            <SelectField
              name="second_factor_for"
              label="Required for"
              value={here.organization.second_factor_for}
              options={REQUIRED_FOR}
              faults={inputs.faults}
            />
            <button type="submit">Change</button>
          </FormOf>
        </section>
      ) : null}
      {here.may('manage organization') ? (
        <section class="panel" aria-labelledby="organization">
          <h2 id="organization">Organization</h2>
          <FormOf {...here.form(PATHS.organization)}>
            <TextField
              name="organization"
              label="Name"
              value={
                inputs.isFaulty && inputs.raw('organization') !== ''
                  ? inputs.raw('organization')
                  : here.organization.name
              }
              faults={inputs.faults}
            />
            <button type="submit">Rename the organization</button>
          </FormOf>
        </section>
      ) : null}
    </Layout>
  );
}

const REQUIRED_FOR: readonly { readonly value: SecondFactorFor; readonly label: string }[] = [
  { value: 'nobody', label: 'Nothing: each member decides' },
  { value: 'production', label: 'Production applications and the organization' },
  { value: 'everything', label: 'Everything in the dashboard' },
];

const optionsOf = (roles: readonly MemberRole[]) => roles.map((value) => ({ value, label: roleName(value) }));

function MemberRow({ here, roles, member }: MembersPageProps & { readonly member: ListedMember }): JSX.Element {
  const { id, name, email, role, created_at, hasSecondFactor } = member;
  const isSelf = id === here.member.id;
  return (
    <li>
      <div class="what">
        <span class="title">{name}</span>
        <span class={`badge ${role}`}>{roleName(role)}</span>
        {hasSecondFactor ? <Badge label="Second factor" tone="good" /> : null}
        {isSelf ? <span class="soft">you</span> : null}
      </div>
      <p class="soft">
        {email}, since <Day at={created_at} />
      </p>
      {roles.includes(role) ? (
        <div class="deeds">
          <details class="asked">
            <summary>
              Change the role <span class="hidden">of {name}</span>
            </summary>
            <div class="inside">
              <FormOf {...here.form(`${PATHS.members}/${id}/role`)}>
                <SelectField
                  name="role"
                  prefix={`${id}-`}
                  label={`Role of ${name}`}
                  value={role}
                  options={optionsOf(roles)}
                  faults={[]}
                />
                <button type="submit">Change the role</button>
              </FormOf>
            </div>
          </details>
          {isSelf ? null : <DeviceButtons here={here} member={member} />}
          <AskedButton
            {...here.form(`${PATHS.members}/${id}/remove`)}
            label="Remove"
            subject={name}
            consequence={
              isSelf
                ? 'You lose your login, and are signed out.'
                : 'This person is signed out at once, and loses the login. The keys that this person made stay.'
            }
          />
        </div>
      ) : null}
    </li>
  );
}

const DeviceButtons = ({
  here,
  member: { id, name, hasSecondFactor },
}: {
  readonly here: Here;
  readonly member: ListedMember;
}): JSX.Element => (
  <>
    <AskedButton
      {...here.form(`${PATHS.members}/${id}/sign-out`)}
      label="Sign out"
      subject={name}
      consequence="Every session of this person ends at once. The person can sign in again."
    />
    {hasSecondFactor ? (
      <AskedButton
        {...here.form(`${PATHS.members}/${id}/reset-second-factor`)}
        label="Reset the second factor"
        subject={`of ${name}`}
        consequence="This is for a lost device. Every session of this person ends, and the password alone is enough until a second factor is set up again. Make sure that it is this person who asks."
      />
    ) : null}
  </>
);

function InvitationRow({
  here,
  roles,
  invitation,
}: MembersPageProps & { readonly invitation: Invitation }): JSX.Element {
  const { id, label, role, expires_at } = invitation;
  return (
    <li>
      <div class="what">
        <span class="title">{label}</span>
        <span class={`badge ${role}`}>{roleName(role)}</span>
      </div>
      <p class="soft">
        The link works until <Time at={expires_at} />
      </p>
      {roles.includes(role) ? (
        <AskedButton
          {...here.form(`${PATHS.invitations}/${id}/withdraw`)}
          label="Withdraw"
          subject={label}
          consequence="The link does not work any more."
        />
      ) : null}
    </li>
  );
}

function InviteForm({ here, roles, inputs, nowMs }: MembersPageProps): JSX.Element {
  const faults = inputs.faults;
  return (
    <details class="panel" open={faults.some(({ field }) => field === 'label' || field === 'role')}>
      <summary>Invite a person</summary>
      <div class="inside">
        <FormOf {...here.form(PATHS.invitations, newId('inv', nowMs))}>
          <TextField
            name="label"
            label="Whom the link is for"
            hint="For this list. You give the link to the person yourself."
            value={inputs.raw('label')}
            faults={faults}
          />
          <SelectField
            name="role"
            label="Role"
            value={inputs.raw('role')}
            hint="A Member manages account keys of development applications, and only looks at production."
            options={optionsOf(roles)}
            faults={faults}
          />
          <button type="submit">Make a link</button>
        </FormOf>
      </div>
    </details>
  );
}
