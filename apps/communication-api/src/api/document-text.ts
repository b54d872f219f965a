/** The first page of the API reference. */
export const DESCRIPTION = `Send email from the mailboxes that your users linked. Link mailboxes, and manage accounts, API keys, scopes and limits.

## Versions

\`POST /api/v1/emails\` is version 1.0 of the API, and all operations below \`/v2\` are version 2.0. Each operation says its version, also in \`x-api-version\`. The version of this document is the version of the service.

## Requests

Every request carries an API key in the header \`X-API-KEY\`. A body is JSON or a URL-encoded form. \`POST /api/v1/emails\` also accepts \`multipart/form-data\`. An unknown field is refused with 422, so that a misspelt field is never ignored. A text with NUL or half of a surrogate pair is refused with 422, too. Times are ISO 8601 in UTC. \`HEAD\` answers as \`GET\`, without the body.

In a form, an object or array is one field with JSON (\`to=[{"identifier":"ann@example.com"}]\`), one field per item (each with a JSON object), or fields with brackets (\`to[0][identifier]=ann@example.com\`). Use one of these ways per field. An optional field that is empty is absent.

## Errors

Every error is a JSON object with \`type\`, \`title\`, \`status\` and \`req_id\`, and usually \`detail\`. Decide by \`status\` and \`type\`; \`title\` and \`detail\` are for people. \`req_id\` is also in the header \`x-request-id\` of every answer. Give it to support. Each status lists its types in its schema.

Repeat a request after 429 and 503, after the seconds in \`retry-after\` if it is there, and after 500 and 504. Repeat \`POST /api/v1/emails\` with the same \`Idempotency-Key\`: the email may be out already, and then the answer is its outcome.

## Idempotency

Send an \`Idempotency-Key\` (1 to 255 characters, for example a random UUID) with \`POST /api/v1/emails\`. A retry with the same key and the same request gets the first result again, and sends nothing. If the first answer is still stored, the header \`idempotency-replayed: true\` comes with it. The same request may be encoded with a different multipart boundary. The same key with a different request is 409 \`errors/already_used\`. Keys are known for 24 hours.

409 \`errors/conflict\` with \`retry-after\` means that the first request is still sending. Without \`retry-after\`, it is not known whether the provider sent the email; it is not sent again. \`GET /v2/emails\` shows its outcome.

## Limits

Each account has limits for each operation of the Methods API (now: \`POST /api/v1/emails\`). Limits count in windows that start with the first request. \`x-ratelimit-limit\`, \`x-ratelimit-remaining\` and \`x-ratelimit-reset\` (seconds) describe one window: the last checked window, or the window that refused the request. 429 \`api/too_many_requests\` is our limit: the provider was not called. 429 \`provider/too_many_requests\` is the limit of the provider.

## Lists

Lists show the newest entries first: \`limit\` per page (1 to 100, default 20). If \`has_more\` is true, give \`next_cursor\` as \`cursor\` to get the next page. \`offset\` skips entries instead; it cannot be combined with \`cursor\`.`;

/** The groups of operations, in the order of the page. */
export const TAGS = [
  { name: 'Emails', description: 'Send email from a linked account, and see what became of it.' },
  { name: 'Links', description: 'Links to the wizard in which a user links or reconnects an account.' },
  { name: 'Accounts', description: 'The provider accounts that your users have linked.' },
  {
    name: 'Mock mailbox',
    description: 'The emails that the mock provider delivered. In applications for development only.',
  },
  { name: 'API keys', description: 'Keys that reach all accounts, or the accounts of one scope. For service keys.' },
  { name: 'Scopes', description: 'Groups of accounts that a key can be confined to. For service keys.' },
  { name: 'Limits', description: 'Limits per provider or account. For service keys.' },
  { name: 'Webhooks', description: 'Endpoints that receive events, signed as Standard Webhooks. For service keys.' },
  { name: 'Domains', description: 'Custom domains of the wizard and of tracked links. For service keys.' },
];

/** The meaning of a status, for the heading of its answers. */
export const STATUS_TEXT: Readonly<Record<string, string>> = {
  400: 'The request cannot be read, for example malformed JSON.',
  401: 'The API key is missing, wrong or expired, or the provider refuses the credentials of the account.',
  403: 'The API key, the account or the provider does not allow this.',
  404: 'There is nothing with this id in your application.',
  408: 'The client paused for too long while it sent the body.',
  409: 'The request conflicts with an earlier one, or with the state of the resource.',
  413: 'The body is too large.',
  422: 'A field is missing, unknown or invalid, or the provider refuses the content. `detail` names the field.',
  429: 'Too many requests. Wait for the seconds in `retry-after`.',
  500: 'An error in the service or at the provider. Repeat a send with the same Idempotency-Key.',
  503: 'The service or the network to the provider is not available now. Try again later, a send with the same Idempotency-Key.',
  504: 'The provider did not answer in time. Repeat the request with the same Idempotency-Key.',
};
