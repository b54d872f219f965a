import { OptionError } from '../base/errors.ts';
import { after, type MaybePromise } from '../base/maybe-promise.ts';
import type { GateOptions } from './options.ts';
import { callResolver, StageError } from './resolver.ts';

/** What `deny` and `allow` say of a request. `limited`: neither of them names it. */
export type Access = 'limited' | 'allowed' | { readonly deniedFor: string };

const DENIED = 'This request is not allowed.';
const BAD_ALLOW = 'the resolver must return true or false';
const BAD_DENY = 'the resolver must return true, false or a text for the client that is not empty';

/**
 * Asks `deny` first. A request that it refuses never reaches `allow`.
 * @throws StageError; the promise rejects with it if a resolver is asynchronous
 */
export function resolveAccess<Request>(
  { deny, allow }: Pick<GateOptions<Request>, 'deny' | 'allow'>,
  request: Request,
): MaybePromise<Access> {
  const denied = deny === undefined ? false : callResolver('deny', deny, request);
  return after(denied, (answer) => {
    if (answer === true) return { deniedFor: DENIED };
    if (typeof answer === 'string' && answer !== '') return { deniedFor: answer };
    // Anything else, such as undefined, would let a request pass by accident.
    if (answer !== false) throw new StageError('deny', new OptionError('deny', answer, BAD_DENY));
    return allow === undefined ? 'limited' : after(callResolver('allow', allow, request), readAllowed);
  });
}

function readAllowed(answer: boolean): Access {
  if (answer === true) return 'allowed';
  // Any other truthy value would let a request past its limit by accident.
  if (answer) throw new StageError('allow', new OptionError('allow', answer, BAD_ALLOW));
  return 'limited';
}
