/** Addresses of the dashboard's pages and forms. */
export const PATHS = {
  home: '/dashboard',
  signIn: '/dashboard/sign-in',
  signInCode: '/dashboard/sign-in/code',
  signOut: '/dashboard/sign-out',
  applications: '/dashboard/applications',
  members: '/dashboard/members',
  invitations: '/dashboard/invitations',
  organization: '/dashboard/organization',
  requireSecondFactor: '/dashboard/organization/second-factor',
  domains: '/dashboard/domains',
  audit: '/dashboard/audit',
  login: '/dashboard/login',
  secondFactor: '/dashboard/login/second-factor',
  sessions: '/dashboard/login/sessions',
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

export const endpointPath = (application: string, endpoint: string, below?: string): string =>
  applicationPath(application, ['webhooks', endpoint, ...(below === undefined ? [] : [below])].join('/'));

/** The page with the requests to an endpoint about one event. */
export const deliveryPath = (application: string, endpoint: string, event: string, below?: string): string =>
  endpointPath(application, endpoint, ['events', event, ...(below === undefined ? [] : [below])].join('/'));

export const scopePath = (application: string, scope: string, below?: string): string =>
  applicationPath(application, ['scopes', scope, ...(below === undefined ? [] : [below])].join('/'));

/** The link by which a person becomes a member. */
export const joinPath = (token: string): string => `/dashboard/join/${token}`;
