/** Addresses of the dashboard's pages and forms. */
export const PATHS = {
  home: '/dashboard',
  signIn: '/dashboard/sign-in',
  signOut: '/dashboard/sign-out',
  applications: '/dashboard/applications',
  members: '/dashboard/members',
  invitations: '/dashboard/invitations',
  organization: '/dashboard/organization',
  audit: '/dashboard/audit',
  login: '/dashboard/login',
} as const;

export const applicationPath = (id: string, below?: string): string =>
  [PATHS.applications, id, ...(below === undefined ? [] : [below])].join('/');

export const accountPath = (application: string, account: string, below?: string): string =>
  applicationPath(application, ['accounts', account, ...(below === undefined ? [] : [below])].join('/'));

export const emailPath = (application: string, email: string, below?: string): string =>
  applicationPath(application, ['emails', email, ...(below === undefined ? [] : [below])].join('/'));

/** The limits of a provider, in an application. */
export const providerPath = (application: string, provider: string): string =>
  applicationPath(application, `limits/${provider}`);

/** The link by which a person becomes a member. */
export const joinPath = (token: string): string => `/dashboard/join/${token}`;
