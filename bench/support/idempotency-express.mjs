import { requirePeer } from 'headgate-bench/peers';

/**
 * express-idempotency with its own adapter, on the parts of Express's request and response that it uses, without a
 * server.
 */
export function expressIdempotency() {
  const { IdempotencyService } = requirePeer('express-idempotency');
  const service = new IdempotencyService();
  return (key, { object }, operation) =>
    new Promise((resolve, reject) => {
      const headers = { 'idempotency-key': key };
      const request = {
        method: 'POST',
        url: '/api/v1/emails',
        query: {},
        body: object,
        headers,
        get: (name) => headers[name],
      };
      const response = new Response(resolve);
      const next = (error) => {
        if (error !== undefined) reject(error);
        else if (!service.isHit(request)) operation().then((value) => response.send(value), reject);
      };
      service.provideMiddlewareFunction(request, response, next).catch(reject);
    });
}

class Response {
  statusCode = 200;
  #headers = {};
  #sent;

  constructor(sent) {
    this.#sent = sent;
  }

  setHeader(name, value) {
    this.#headers[name] = value;
  }

  getHeaders() {
    return this.#headers;
  }

  status(code) {
    this.statusCode = code;
    return this;
  }

  send(value) {
    this.#sent(value);
  }
}
