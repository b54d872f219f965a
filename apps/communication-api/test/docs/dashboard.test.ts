import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Environment } from '../../src/domain/key-token.ts';
import {
  type ApplicationAction,
  type MemberRole,
  mayInApplication,
  mayInOrganization,
  type OrganizationAction,
} from '../../src/domain/member-roles.ts';

const page = readFileSync(new URL('../../docs/dashboard.md', import.meta.url), 'utf8');

/** What each row of the table says. */
const OF_APPLICATIONS: Readonly<Record<string, readonly ApplicationAction[]>> = {
  'see applications and account keys': ['read application', 'read account keys'],
  'create and revoke account keys, global and scoped': ['manage account keys'],
  'see, create and revoke service keys': ['read service keys', 'manage service keys'],
  'see accounts, their live windows and limits': ['read accounts', 'read limits'],
  'make links to reconnect accounts, pause, resume and remove accounts': ['manage accounts'],
  'see emails and what became of them': ['read emails'],
  'resolve emails whose outcome is unknown': ['resolve emails'],
  'adjust and reset limits of an account or a provider, empty counters': ['manage limits'],
  'see webhooks, their deliveries and payloads': ['read webhooks'],
  'create, change, disable and delete webhooks, rotate secrets, redeliver events': ['manage webhooks'],
  'see scopes': ['read scopes'],
  'create, change, disable and delete scopes': ['manage scopes'],
};
const OF_ORGANIZATIONS: Readonly<Record<string, readonly OrganizationAction[]>> = {
  'create applications': ['create applications'],
  'see, add, check and remove custom domains': ['manage domains'],
  'see the audit log': ['read audit log'],
  'invite, change, sign out and remove Members and Admins, reset their second factor': [
    'read members',
    'manage members',
  ],
  'invite, change, sign out and remove Owners, reset their second factor': ['manage owners'],
  'require a second factor': ['require second factor'],
  'rename the organization': ['manage organization'],
};

const COLUMNS: readonly (readonly [MemberRole, Environment])[] = [
  ['member', 'development'],
  ['member', 'production'],
  ['admin', 'production'],
  ['owner', 'production'],
];

test('the page says of each action who may do it', () => {
  const table = /## Who may do what\n.*?\n\|---[^\n]*\n(.*?)\n\n/s.exec(page)?.[1] ?? '';
  const rows = table.split('\n').map((line) => line.split('|').slice(1, -1));
  const said = Object.fromEntries(rows.map(([what = '', ...cells]) => [what.trim(), cells.map((cell) => cell.trim())]));
  const word = (may: boolean): string => (may ? 'yes' : 'no');
  const applications = Object.entries(OF_APPLICATIONS).map(([what, actions]) => [
    what,
    COLUMNS.map(([role, environment]) => word(actions.every((action) => mayInApplication(role, action, environment)))),
  ]);
  const organizations = Object.entries(OF_ORGANIZATIONS).map(([what, actions]) => [
    what,
    COLUMNS.map(([role]) => word(actions.every((action) => mayInOrganization(role, action)))),
  ]);
  expect(said).toEqual(Object.fromEntries([...applications, ...organizations]));
});
