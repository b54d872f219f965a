/** Every `type` of an error that sending an email can end in, by HTTP status, as the specification lists them. */
export const SEND_ERROR_TYPES = {
  401: [
    'errors/missing_credentials',
    'errors/multiple_sessions',
    'errors/invalid_checkpoint_solution',
    'errors/invalid_proxy_credentials',
    'errors/checkpoint_error',
    'errors/invalid_credentials',
    'errors/expired_credentials',
    'errors/insufficient_privileges',
    'errors/disconnected_account',
    'errors/disconnected_feature',
    'errors/invalid_credentials_but_valid_account_imap',
    'errors/expired_link',
    'errors/wrong_account',
    'errors/invalid_imap_configuration',
    'errors/invalid_smtp_configuration',
  ],
  403: [
    'errors/account_restricted',
    'errors/account_mismatch',
    'errors/insufficient_permissions',
    'errors/session_mismatch',
    'errors/feature_not_subscribed',
    'errors/subscription_required',
    'errors/unknown_authentication_context',
    'errors/action_required',
    'errors/resource_access_restricted',
  ],
  404: ['errors/resource_not_found', 'errors/invalid_resource_identifier'],
  409: [
    'errors/operation_canceled',
    'errors/already_exists',
    'errors/already_used',
    'errors/checkpoint_switching_not_available',
    'errors/conflict',
  ],
  422: [
    'errors/invalid_account',
    'errors/invalid_recipient',
    'errors/no_connection_with_recipient',
    'errors/blocked_recipient',
    'errors/user_unreachable',
    'errors/unprocessable_entity',
    'errors/payment_error',
    'errors/action_already_performed',
    'errors/invalid_message',
    'errors/invalid_post',
    'errors/not_allowed_inmail',
    'errors/insufficient_credits',
    'errors/cannot_resend_yet',
    'errors/cannot_resend_within_24hrs',
    'errors/limit_exceeded',
    'errors/connection_limit_reached',
    'errors/already_invited_recently',
    'errors/already_connected',
    'errors/cannot_invite_attendee',
    'errors/parent_mail_not_found',
    'errors/parent_mail_invalid_provider_id',
    'errors/invalid_reply_subject',
    'errors/invalid_headers',
    'errors/send_as_denied',
    'errors/invalid_folder',
    'errors/invalid_thread',
    'errors/unauthorized',
    'errors/sender_rejected',
    'errors/recipient_rejected',
    'errors/ip_rejected_by_server',
    'errors/provider_unreachable',
    'errors/account_configuration_error',
    'errors/cant_send_message',
    'errors/realtime_client_not_initialized',
    'errors/comments_disabled',
    'errors/insufficient_job_slot',
  ],
  500: ['errors/unexpected_error', 'errors/provider_error', 'errors/authentication_intent_error'],
  503: [
    'errors/no_client_session',
    'errors/no_channel',
    'errors/no_handler',
    'errors/network_down',
    'errors/service_unavailable',
  ],
  504: ['errors/request_timeout'],
} as const;

/** The types that are not in that list: of limits, of expired keys, and of requests that HTTP itself refuses. */
export const OTHER_ERROR_TYPES = {
  400: ['errors/malformed_request'],
  401: ['api/expired_authorization'],
  408: ['errors/request_timeout'],
  413: ['errors/payload_too_large'],
  429: ['api/too_many_requests', 'provider/too_many_requests'],
  431: ['errors/headers_too_large'],
} as const;

type TypesIn<Table, Status> = Status extends keyof Table
  ? Table[Status] extends readonly (infer Type extends string)[]
    ? Type
    : never
  : never;

/** A status that the service answers with an error object. */
export type ErrorStatus = keyof typeof SEND_ERROR_TYPES | keyof typeof OTHER_ERROR_TYPES;

/** The error types by status: for `createProblem` of `headgate/http`. */
export type ErrorTypesByStatus = {
  readonly [Status in ErrorStatus]:
    | TypesIn<typeof SEND_ERROR_TYPES, Status>
    | TypesIn<typeof OTHER_ERROR_TYPES, Status>;
};

export type ErrorType<Status extends ErrorStatus = ErrorStatus> = ErrorTypesByStatus[Status];

/** All types of a status. */
export function errorTypesOf<Status extends ErrorStatus>(status: Status): readonly ErrorType<Status>[] {
  const tables: readonly Partial<Record<ErrorStatus, readonly string[]>>[] = [SEND_ERROR_TYPES, OTHER_ERROR_TYPES];
  return tables.flatMap((table) => table[status] ?? []) as ErrorType<Status>[];
}

export const ERROR_STATUSES: readonly ErrorStatus[] = [
  ...new Set([...Object.keys(SEND_ERROR_TYPES), ...Object.keys(OTHER_ERROR_TYPES)].map((status) => Number(status))),
].sort((a, b) => a - b) as ErrorStatus[];
