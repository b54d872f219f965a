/** The output of the command line. */
export interface Terminal {
  out(text: string): void;
  error(text: string): void;
  /** Whether a person sees what `error` prints. By default not. */
  readonly isInteractive?: boolean;
}
