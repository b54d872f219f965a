import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Gate } from '../../gate/gate.ts';
import type { Reply } from '../../http/problem.ts';
import type { ExpressRequest } from '../express.ts';
import { enterGate } from '../node/bridge.ts';
import type { NodeRequest } from '../node/http.ts';
import { sendFastifyReply, sendReply } from '../node/send.ts';

/** The part of a Fastify request that the adapter uses; `FastifyRequest` has it, also over HTTP/2. */
export interface NestFastifyRequest {
  readonly raw: NodeRequest;
  readonly method: string;
  readonly url: string;
  readonly originalUrl: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly routeOptions: { readonly url?: string | undefined };
}

/**
 * A request of Nest, on Express or on Fastify. Only the parts that the adapter uses, because no user has the types of
 * both platforms.
 */
export type NestRequest = (ExpressRequest & { readonly body?: unknown }) | NestFastifyRequest;
export type NestResponse = ServerResponse | FastifyReply;

/** Takes an HTTP request through a gate. If the gate answers it, the promise never settles. */
export function enterHttp(gate: Gate<NestRequest>, context: ExecutionContext): MaybePromise<boolean> {
  const http = context.switchToHttp();
  const response = http.getResponse<NestResponse>();
  return enterGate<NestRequest, boolean>(gate, http.getRequest<NestRequest>(), {
    response: rawResponse(response),
    answer(reply) {
      send(response, reply);
      return answered();
    },
    proceed: () => true,
    skip: answered,
  });
}

export function rawResponse(response: NestResponse): ServerResponse {
  return 'raw' in response ? response.raw : response;
}

/** Sends an answer of the gate's own. */
export function send(response: NestResponse, reply: Reply): void {
  if ('raw' in response) sendFastifyReply(response, reply);
  else sendReply(response, reply);
}

/** Never settles: the request was answered, so Nest must do nothing more for it. */
export function answered(): Promise<never> {
  return new Promise(() => {});
}
