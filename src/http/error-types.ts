/**
 * Every `type` of an error that headgate itself produces, by HTTP status: the library's, then those that only the
 * gateway process answers. A wrong pair of status and type does not compile. An application adds its own types with
 * {@link WithErrorTypes}.
 */
export interface ErrorTypesByStatus {
  /** HTTP, a path or a body that cannot be parsed; a request without the idempotency key that its route requires. */
  400: 'errors/malformed_request' | 'errors/missing_idempotency_key';
  /** A request without an account, or the gateway's check of the API key. */
  401: 'errors/missing_credentials' | 'errors/invalid_credentials' | 'api/expired_authorization';
  /**
   * A gate's `deny` refused the request, or a scoped API key was used for an account outside its scope. Or the role of
   * a token of the Admin API is too low.
   */
  403: 'errors/resource_access_restricted' | 'errors/insufficient_permissions';
  /** A path that no route matches, or an account that is unknown to the caller's application. */
  404: 'errors/resource_not_found' | 'errors/invalid_resource_identifier';
  /** The Admin API knows this path, but not with this method. */
  405: 'errors/method_not_allowed';
  /** The client did not send its request in time. */
  408: 'errors/request_timeout';
  /** An idempotency key that is in use, or that belongs to another request. */
  409: 'errors/conflict' | 'errors/already_used';
  /** The Admin API: the limit was changed since the client read it. */
  412: 'errors/precondition_failed';
  413: 'errors/payload_too_large';
  /** The body of a request for the Admin API is not JSON. */
  415: 'errors/unsupported_media_type';
  /** A body or an idempotency key that cannot be accepted, or a cost that never fits into its limit. */
  422: 'errors/unprocessable_entity' | 'api/cost_exceeds_limit';
  /** A limit of headgate's, or the provider's own. */
  429: 'api/too_many_requests' | 'provider/too_many_requests';
  431: 'errors/headers_too_large';
  500: 'errors/unexpected_error';
  /** The upstream cannot be reached, or the store cannot decide. */
  503: 'errors/network_down' | 'errors/service_unavailable';
  /** The upstream did not answer in time. */
  504: 'errors/request_timeout';
}

/**
 * Headgate's error types and an application's own, for the type parameter of `createProblem`.
 * @example
 * ```ts
 * type MyErrors = WithErrorTypes<{ 402: 'billing/card_declined'; 422: 'errors/invalid_recipient' }>;
 * createProblem<MyErrors>(422, 'errors/invalid_recipient', 'to[1] is not an address.');
 * ```
 */
export type WithErrorTypes<Own> = {
  readonly [Status in (keyof ErrorTypesByStatus | keyof Own) & number]:
    | (Status extends keyof ErrorTypesByStatus ? ErrorTypesByStatus[Status] : never)
    | (Status extends keyof Own ? Own[Status] : never);
};

/** A status that headgate answers with an error object. */
export type ErrorStatus = keyof ErrorTypesByStatus;

/** The types of errors with this status. */
export type ErrorType<Status extends ErrorStatus = ErrorStatus> = ErrorTypesByStatus[Status];
