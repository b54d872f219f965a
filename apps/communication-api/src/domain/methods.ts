/** The routes of the Methods API: operations that reach a provider, and so are limited. */
export const METHODS = ['POST /api/v1/emails'] as const;
