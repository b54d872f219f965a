/** The address of a link's page: `/auth/l/<token>`, or one below it. */
export const linkPath = (token: string, below?: string): string =>
  below === undefined ? `/auth/l/${token}` : `/auth/l/${token}/${below}`;
