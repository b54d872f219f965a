/** An error that its message explains to the operator: it is printed without a stack. */
export class UserError extends Error {
  override readonly name: string = 'UserError';

  /** @param exitCode 2: a setting or an argument is wrong; 1: the system refused */
  constructor(
    message: string,
    readonly exitCode: 1 | 2,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
