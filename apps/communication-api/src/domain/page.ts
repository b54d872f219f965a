/** Which page of a list is read. Lists are sorted by id, the newest first. */
export interface Page {
  /** Entries per page. */
  readonly limit: number;
  /** Entries to skip. */
  readonly offset: number;
  /** Only entries whose id is smaller. */
  readonly before: string | undefined;
}
