import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { JSX } from 'preact';
import { counted } from '../domain/counted.ts';
import { isUnavailable } from '../domain/database-unavailable.ts';
import { ServiceError } from '../domain/service-error.ts';
import { headersOf } from '../wizard/answers.ts';
import { pageHtml } from '../wizard/pages/layout.tsx';
import { WrongHostError } from '../wizard/visit.ts';
import { MessagePage } from './pages/message-page.tsx';
import { PATHS } from './paths.ts';

const RETRY_SECONDS = 5;

/** Answers with a page. Default of `status`: 200. */
export function sendPage(
  reply: FastifyReply,
  page: JSX.Element,
  status = 200,
  options?: { readonly frames?: boolean },
): FastifyReply {
  return reply.code(status).headers(headersOf(null, options)).type('text/html; charset=utf-8').send(pageHtml(page));
}

/** Leads on with a GET, also after a form, so that a reload never sends it again. */
export function seeOther(reply: FastifyReply, path: string): FastifyReply {
  return reply.headers(headersOf(null)).redirect(path, 303);
}

interface Message {
  readonly title: string;
  readonly detail: string;
}

/** Answers an error with a page. */
export function answerError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof WrongHostError) {
    const detail = 'The dashboard is at the address of BASE_URL. The operator of the service knows it.';
    return sendPage(reply, <MessagePage title="This is not the host of the dashboard" detail={detail} />, 421);
  }
  const known = error instanceof ServiceError ? error : undefined;
  const away = known === undefined && isUnavailable(error);
  const status = known?.status ?? (away ? 503 : statusOf(error as FastifyError));
  if (status >= 500) request.log.error({ req_id: request.id, err: error }, 'request failed');
  const retryAfter = known?.retryAfter ?? (away ? RETRY_SECONDS : undefined);
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
  const { title, detail } = messageOf(known, status, retryAfter, request.id);
  const page = (
    <MessagePage title={title} detail={detail}>
      <a class="button" href={PATHS.home}>
        To the dashboard
      </a>
    </MessagePage>
  );
  return sendPage(reply, page, status);
}

const statusOf = ({ statusCode = 500 }: FastifyError): number =>
  statusCode >= 400 && statusCode < 500 ? statusCode : 500;

function messageOf(
  error: ServiceError | undefined,
  status: number,
  retryAfter: number | undefined,
  id: string,
): Message {
  switch (error?.type) {
    case 'errors/insufficient_permissions':
      return { title: 'Your role does not allow this', detail: 'Ask an Admin or an Owner of your organization.' };
    case 'errors/session_mismatch':
      return {
        title: 'This form is out of date',
        detail: 'It was made for another session. Nothing was changed. Open the page again, then repeat.',
      };
    case 'errors/resource_not_found':
    case 'errors/invalid_resource_identifier':
      return { title: 'This page does not exist', detail: 'It may have been removed. Nothing was changed.' };
    case 'errors/already_exists':
      return {
        title: 'This was done already',
        detail:
          'The form was sent twice. It took effect once, and only the first answer shows the secret, if there is one.',
      };
    case 'api/too_many_requests':
      return { title: 'Too many attempts', detail: `Wait ${counted(retryAfter ?? 60, 'second')}, then try again.` };
    default:
  }
  if (status === 503)
    return { title: 'The service is not available now', detail: 'Nothing was changed. Try again in some seconds.' };
  if (status >= 500)
    return { title: 'Something went wrong', detail: `The log of the service has details under ${id}.` };
  return { title: 'This request cannot be read', detail: 'Nothing was changed. Open the page again, then repeat.' };
}
