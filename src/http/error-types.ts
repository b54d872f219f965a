/**
 * Every `type` that an error may have, by HTTP status: the specification's table (seed, section 7), and where it has none for a status,
 * ours, listed in `docs/errors.md`. A wrong pair of status and type does not compile.
 */
export interface ErrorTypesByStatus {
  /** Ours. */
  400: 'errors/malformed_request';
  401:
    | 'errors/missing_credentials'
    | 'errors/multiple_sessions'
    | 'errors/invalid_checkpoint_solution'
    | 'errors/invalid_proxy_credentials'
    | 'errors/checkpoint_error'
    | 'errors/invalid_credentials'
    | 'errors/expired_credentials'
    | 'errors/insufficient_privileges'
    | 'errors/disconnected_account'
    | 'errors/disconnected_feature'
    | 'errors/invalid_credentials_but_valid_account_imap'
    | 'errors/expired_link'
    | 'errors/wrong_account'
    | 'errors/invalid_imap_configuration'
    | 'errors/invalid_smtp_configuration'
    | 'api/expired_authorization';
  403:
    | 'errors/account_restricted'
    | 'errors/account_mismatch'
    | 'errors/insufficient_permissions'
    | 'errors/session_mismatch'
    | 'errors/feature_not_subscribed'
    | 'errors/subscription_required'
    | 'errors/unknown_authentication_context'
    | 'errors/action_required'
    | 'errors/resource_access_restricted';
  404: 'errors/resource_not_found' | 'errors/invalid_resource_identifier';
  /** Ours. */
  408: 'errors/request_timeout';
  409:
    | 'errors/operation_canceled'
    | 'errors/already_exists'
    | 'errors/already_used'
    | 'errors/checkpoint_switching_not_available'
    | 'errors/conflict';
  /** Ours. */
  413: 'errors/payload_too_large';
  422:
    | 'errors/invalid_account'
    | 'errors/invalid_recipient'
    | 'errors/no_connection_with_recipient'
    | 'errors/blocked_recipient'
    | 'errors/user_unreachable'
    | 'errors/unprocessable_entity'
    | 'errors/payment_error'
    | 'errors/action_already_performed'
    | 'errors/invalid_message'
    | 'errors/invalid_post'
    | 'errors/not_allowed_inmail'
    | 'errors/insufficient_credits'
    | 'errors/cannot_resend_yet'
    | 'errors/cannot_resend_within_24hrs'
    | 'errors/limit_exceeded'
    | 'errors/connection_limit_reached'
    | 'errors/already_invited_recently'
    | 'errors/already_connected'
    | 'errors/cannot_invite_attendee'
    | 'errors/parent_mail_not_found'
    | 'errors/parent_mail_invalid_provider_id'
    | 'errors/invalid_reply_subject'
    | 'errors/invalid_headers'
    | 'errors/send_as_denied'
    | 'errors/invalid_folder'
    | 'errors/invalid_thread'
    | 'errors/unauthorized'
    | 'errors/sender_rejected'
    | 'errors/recipient_rejected'
    | 'errors/ip_rejected_by_server'
    | 'errors/provider_unreachable'
    | 'errors/account_configuration_error'
    | 'errors/cant_send_message'
    | 'errors/realtime_client_not_initialized'
    | 'errors/comments_disabled'
    | 'errors/insufficient_job_slot';
  429: 'api/too_many_requests' | 'provider/too_many_requests';
  /** Ours. */
  431: 'errors/headers_too_large';
  500: 'errors/unexpected_error' | 'errors/provider_error' | 'errors/authentication_intent_error';
  503:
    | 'errors/no_client_session'
    | 'errors/no_channel'
    | 'errors/no_handler'
    | 'errors/network_down'
    | 'errors/service_unavailable';
  504: 'errors/request_timeout';
}

/** A status that has an error object. */
export type ErrorStatus = keyof ErrorTypesByStatus;

/** The types that an error of this status may have. */
export type ErrorType<Status extends ErrorStatus = ErrorStatus> = ErrorTypesByStatus[Status];
