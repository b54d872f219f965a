import type { Environment } from './key-token.ts';

/** The roles of people in their organization. API keys use different roles: see `key-token.ts`. */
export const MEMBER_ROLES = ['member', 'admin', 'owner'] as const;
export type MemberRole = (typeof MEMBER_ROLES)[number];

/** The actions of every person on every application. */
const READING = [
  'read application',
  'read account keys',
  'read accounts',
  'read limits',
  'read emails',
  'read webhooks',
  'read scopes',
] as const;

/** The actions of a Member on applications for development only. */
const MANAGING = [
  'manage account keys',
  'manage accounts',
  'manage limits',
  'resolve emails',
  'manage webhooks',
  'manage scopes',
] as const;

/** An action on one application. */
export type ApplicationAction =
  | (typeof READING)[number]
  | (typeof MANAGING)[number]
  | 'read service keys'
  | 'manage service keys';

/** An action on the whole organization. */
export type OrganizationAction =
  | 'list applications'
  | 'create applications'
  | 'read members'
  | 'manage members'
  | 'manage owners'
  | 'require second factor'
  | 'read audit log'
  | 'manage domains'
  | 'manage organization';

/** The actions of a Member, by environment of the application. An Admin and an Owner may do everything in both. */
const OF_MEMBERS: Readonly<Record<Environment, readonly ApplicationAction[]>> = {
  development: [...READING, ...MANAGING],
  production: READING,
};

const ONLY_OF_OWNERS: readonly OrganizationAction[] = ['manage owners', 'manage organization'];

/** Whether a person may do something with an application. Every request to the dashboard is decided here. */
export const mayInApplication = (role: MemberRole, action: ApplicationAction, environment: Environment): boolean =>
  role !== 'member' || OF_MEMBERS[environment].includes(action);

/** Whether a person may do something with the organization. */
export function mayInOrganization(role: MemberRole, action: OrganizationAction): boolean {
  if (role === 'owner') return true;
  if (role === 'admin') return !ONLY_OF_OWNERS.includes(action);
  return action === 'list applications';
}

/** The action that giving a role to a person, or taking it away, requires. */
export const actionOnRole = (role: MemberRole): OrganizationAction =>
  role === 'owner' ? 'manage owners' : 'manage members';
