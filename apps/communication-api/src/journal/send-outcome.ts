import { createProblem, problemReply, storedResponse } from 'headgate/http';
import type { SendOutcome } from '../domain/send-outcome.ts';
import { ServiceError } from '../domain/service-error.ts';
import { ProviderError } from '../providers/provider.ts';
import type { SendError } from './send-notes.ts';

/** The result of a send. */
export interface SendResult {
  readonly id: string;
  readonly providerId: string | null;
  readonly immutableId: string | null;
}

/** The body of the answer to an email that was sent. */
export const sentBody = ({ id, providerId, immutableId }: SendResult) => ({
  object: 'EmailSent' as const,
  tracking_id: id,
  provider_id: providerId,
  provider_immutable_id: immutableId,
});

/** The same answer, as the claim stores it for retries. */
export const storedSent = (result: SendResult) =>
  storedResponse({
    status: 201,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(sentBody(result)),
  });

/** The answer to an email that was not sent, as the claim stores it for retries. */
export const storedError = ({ status, type, detail }: SendError, requestId: string) =>
  storedResponse(problemReply(createProblem<Record<number, string>>(status, type, detail, requestId)));

/** Statuses with which a provider judges the email itself: it would refuse the same email again. */
export const VERDICTS: readonly number[] = [403, 409, 422];

export const isVerdict = (error: unknown): boolean => error instanceof ProviderError && VERDICTS.includes(error.status);

/** The outcome of an attempt to send that ended with an error. */
export function outcomeOfError(error: unknown): SendOutcome {
  if (error instanceof ProviderError) {
    if (error.sent === 'unknown') return 'unknown';
    return isVerdict(error) ? 'failed' : 'not_sent';
  }
  return error instanceof ServiceError ? 'refused' : 'error';
}
