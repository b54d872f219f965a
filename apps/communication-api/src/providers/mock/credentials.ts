/** The stored credentials of a mock account. */
export interface MockCredentials {
  /** Whether it sends like Gmail, by drafts that can be sent once, or like SMTP, where an outcome can stay unknown. */
  readonly drafts: boolean;
}
