import type { OAuthCredentials } from '../oauth/credentials.ts';

/** What `OUTLOOK_SCOPES` can ask for. */
const PERMISSIONS = {
  /** Drafts, so that a crash never sends twice, and answers to emails that the service did not send. */
  drafts: ['Mail.ReadWrite', 'Mail.Send'],
  send: ['Mail.Send'],
} as const;

export type OutlookScopes = keyof typeof PERMISSIONS;

/** `profile` gives the id of the user, `offline_access` the refresh token. */
export const scopesOf = (kind: OutlookScopes): readonly string[] => [
  ...['openid', 'profile', 'email', 'offline_access'],
  ...PERMISSIONS[kind],
];

/** Microsoft names a permission of Graph with or without Graph's address in front, and in any case. */
export const isGranted = (permission: string, granted: readonly string[]): boolean =>
  granted.some((scope) => scope.split('/').at(-1)?.toLowerCase() === permission.toLowerCase());

export const may = ({ scope }: Pick<OAuthCredentials, 'scope'>, permission: string): boolean =>
  isGranted(permission, scope.split(' '));
