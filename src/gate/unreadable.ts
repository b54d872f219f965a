import { isBodyError } from '../http/body-error.ts';
import type { KeyFault } from '../http/idempotency-key.ts';
import type { Reply } from '../http/problem.ts';
import type { AnswerProblem, IdempotentRequest } from './idempotency-stage.ts';

/** Whether the resolver found a key that cannot be taken (I1). */
export function isKeyFault(found: unknown): found is KeyFault {
  return typeof (found as Partial<KeyFault> | null)?.detail === 'string';
}

/** Whether it is what the resolver is to give: nothing of a claim may rest on a guess, least of all whose key it is (I2). */
export function isIdempotentRequest(found: unknown): found is IdempotentRequest {
  const { scope, key, fingerprint } = Object(found) as Partial<IdempotentRequest>;
  const isPrinted = typeof fingerprint === 'function' || typeof fingerprint?.value === 'string';
  return typeof scope === 'string' && scope !== '' && typeof key === 'string' && isPrinted;
}

/** @returns what a request is answered whose key or body cannot be taken; undefined where the fault is not the client's */
export function unreadable(error: unknown, answer: AnswerProblem): Reply | undefined {
  if (!isBodyError(error)) return undefined;
  const { status, message } = error;
  switch (status) {
    case 400:
      return answer(400, 'errors/malformed_request', message);
    case 408:
      return answer(408, 'errors/request_timeout', message);
    case 413:
      return answer(413, 'errors/payload_too_large', message);
    case 422:
      return answer(422, 'errors/unprocessable_entity', message);
    case 503:
      return answer(503, 'errors/service_unavailable', message);
    case 500:
      return undefined;
  }
}
