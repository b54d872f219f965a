import { isBodyError } from '../http/body-error.ts';
import type { Reply } from '../http/problem.ts';
import type { AnswerProblem } from './idempotency-stage.ts';

/** @returns what a request is answered whose key or body cannot be taken; undefined where the fault is not the client's */
export function problemOfBody(error: unknown, answer: AnswerProblem): Reply | undefined {
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
