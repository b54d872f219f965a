/** Where the command line prints. */
export interface Terminal {
  out(text: string): void;
  error(text: string): void;
}
