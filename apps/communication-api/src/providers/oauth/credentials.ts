/** The stored credentials of an account that was linked by OAuth. */
export interface OAuthCredentials {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** The granted permissions, separated by spaces. */
  readonly scope: string;
}
