import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { JSX } from 'preact';
import { ServiceError } from '../domain/service-error.ts';
import { headersOf, sendPage, wantsJson } from './answers.ts';
import type { Frame } from './pages/layout.tsx';
import { MessagePage } from './pages/message-page.tsx';
import { bareFrame, StrayCallbackError, WrongHostError } from './visit.ts';

interface Message {
  readonly title: string;
  readonly detail: string;
}

/** Answers an error with a page, or for a program with an error object, which the server's own handler makes. */
export function answerError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const frame = request.visitFrame ?? bareFrame(request);
  if (error instanceof WrongHostError) return sendPage(request, reply, pageOf(frame, frame.text.wrongHost), 421);
  const known = error instanceof ServiceError ? error : undefined;
  if (wantsJson(request)) {
    reply.headers(headersOf(request.formOrigins));
    throw error;
  }
  const status = known?.status ?? statusOf(error as FastifyError);
  if (status >= 500) request.log.error({ req_id: request.id, err: error }, 'request failed');
  if (known?.retryAfter !== undefined) reply.header('retry-after', known.retryAfter);
  return sendPage(request, reply, pageOf(frame, messageOf(known, status, frame, request.id)), status);
}

const statusOf = ({ statusCode = 500 }: FastifyError): number =>
  statusCode >= 400 && statusCode < 500 ? statusCode : 500;

const pageOf = (frame: Frame, { title, detail }: Message): JSX.Element => (
  <MessagePage frame={frame} title={title} detail={detail} />
);

function messageOf(
  error: ServiceError | undefined,
  status: number,
  { text, application = '' }: Frame,
  id: string,
): Message {
  if (error instanceof StrayCallbackError) return text.strayCallback;
  const about = ({ title, detail }: { title: string; detail: (application: string) => string }): Message => ({
    title,
    detail: detail(application),
  });
  switch (error?.type) {
    case 'errors/resource_not_found':
      return application === '' ? text.unknownLink : text.notFound;
    case 'errors/expired_link':
      return about(text.expired);
    case 'errors/already_used':
      return about(text.used);
    case 'errors/operation_canceled':
      return about(text.cancelled);
    case 'errors/session_mismatch':
      return text.forged;
    case 'errors/invalid_resource_identifier':
      return about(text.removed);
    case 'errors/feature_not_subscribed':
      return about(text.unavailable);
    case 'api/too_many_requests':
      return { title: text.tooMany.title, detail: text.tooMany.detail(error.retryAfter ?? 60) };
    default:
      return status >= 500 ? { title: text.failed.title, detail: text.failed.detail(id) } : text.invalid;
  }
}
