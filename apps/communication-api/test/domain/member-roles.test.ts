import { describe, expect, test } from 'vitest';
import {
  type ApplicationAction,
  actionOnRole,
  MEMBER_ROLES,
  mayInApplication,
  mayInOrganization,
  type OrganizationAction,
} from '../../src/domain/member-roles.ts';

/** Who may do it, in this order: a Member in development, a Member in production, an Admin, an Owner. */
const OF_APPLICATIONS: readonly (readonly [ApplicationAction, string])[] = [
  ['read application', 'yes yes yes yes'],
  ['read account keys', 'yes yes yes yes'],
  ['manage account keys', 'yes no yes yes'],
  ['read limits', 'yes yes yes yes'],
  ['manage limits', 'yes no yes yes'],
  ['read service keys', 'no no yes yes'],
  ['manage service keys', 'no no yes yes'],
];

/** Who may do it: a Member, an Admin, an Owner. */
const OF_ORGANIZATIONS: readonly (readonly [OrganizationAction, string])[] = [
  ['list applications', 'yes yes yes'],
  ['create applications', 'no yes yes'],
  ['read members', 'no yes yes'],
  ['manage members', 'no yes yes'],
  ['read audit log', 'no yes yes'],
  ['manage owners', 'no no yes'],
  ['manage organization', 'no no yes'],
];

const words = (all: readonly boolean[]): string => all.map((each) => (each ? 'yes' : 'no')).join(' ');

describe('who may do what', () => {
  test.each(OF_APPLICATIONS)('with an application: %s', (action, expected) => {
    expect(
      words([
        mayInApplication('member', action, 'development'),
        mayInApplication('member', action, 'production'),
        mayInApplication('admin', action, 'production'),
        mayInApplication('owner', action, 'production'),
      ]),
    ).toBe(expected);
    for (const role of ['admin', 'owner'] as const) expect(mayInApplication(role, action, 'development')).toBe(true);
  });

  test.each(OF_ORGANIZATIONS)('with the organization: %s', (action, expected) => {
    expect(words(MEMBER_ROLES.map((role) => mayInOrganization(role, action)))).toBe(expected);
  });

  test('only an Owner makes and unmakes Owners', () => {
    expect(MEMBER_ROLES.map(actionOnRole)).toEqual(['manage members', 'manage members', 'manage owners']);
  });
});
