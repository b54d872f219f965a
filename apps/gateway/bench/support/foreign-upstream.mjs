// Kept HTTP clients in the place of `src/proxy/upstream-request.ts` and `src/proxy/proxy.ts`, for builds of the gateway that
// the script upstream-client.mjs measures. They do less than the gateway's own: applications take no turns, and requests
// with a key get no fresh connection.
import { Agent, request } from 'node:http';
import { Readable } from 'node:stream';
import { Pool } from 'undici';
import { Forwarding } from '../../src/proxy/forwarding.ts';
import { framingFields, requestFields } from '../../src/proxy/upstream-fields.ts';

// `define` of the build decides, so that a build holds one client.
const isUndici = UPSTREAM_CLIENT === 'undici';

export function createProxy({ upstream, maxConnections }) {
  const url = new URL(upstream);
  const client = isUndici
    ? new Pool(url.origin, { connections: maxConnections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
    : new Agent({ keepAlive: true, maxSockets: maxConnections, noDelay: true });
  let inUse = 0;
  const pool = {
    client,
    url,
    count(by) {
      inUse += by;
    },
  };
  return {
    get connectionsInUse() {
      return inUse;
    },
    waiting: 0,
    forward(exchange, passage, settings) {
      const forwarding = new Forwarding(exchange, passage, settings, url.host);
      const { method = '', url: path = '' } = exchange.request;
      const { body } = forwarding;
      const framing = framingFields(exchange.request, body !== null);
      const fields = ['Host', url.host, ...requestFields(exchange, settings.forwardFields), ...framing];
      forwarding.send(pool, { method, path, fields, body });
    },
    keep() {},
    close: async () => void client.destroy(),
  };
}

export const inContext = (_trace, listener) => listener;

export class UpstreamRequest {
  isWaiting = false;

  constructor(message, pool, _applicant, listener) {
    Object.assign(this, { message, pool, listener });
  }

  send() {
    this.pool.count(1);
    this.listener.onSend();
    if (isUndici) this.sendByUndici();
    else this.sendByNode();
  }

  sendByUndici() {
    const { method, path, fields, body } = this.message;
    const { listener, pool } = this;
    // undici frames the body itself.
    const headers = [];
    for (let i = 0; i < fields.length; i += 2)
      if (fields[i] !== 'Connection' && fields[i] !== 'Transfer-Encoding') headers.push(fields[i], fields[i + 1]);
    pool.client.dispatch(
      { method, path, headers, body },
      {
        onConnect: (abort) => {
          this.abort = abort;
        },
        onHeaders: (status, raw, resume, reason) => {
          if (status < 200) return true;
          this.resumeByUndici = resume;
          const texts = raw.map((bytes) => bytes.latin1Slice(0, bytes.length));
          listener.onHead({ status, reason, fields: texts });
          return true;
        },
        onData: (chunk) => {
          listener.onData(chunk);
          return !this.isPaused;
        },
        onComplete: () => {
          pool.count(-1);
          listener.onEnd();
        },
        onError: (error) => {
          pool.count(-1);
          if (!this.isOver) listener.onError(error);
        },
      },
    );
  }

  sendByNode() {
    const { method, path, fields, body } = this.message;
    const { listener, pool } = this;
    const { hostname, port } = pool.url;
    const outgoing = request({ agent: pool.client, host: hostname, port, method, path, headers: fields });
    this.outgoing = outgoing;
    outgoing.on('error', (error) => {
      if (!this.isOver) listener.onError(error);
    });
    outgoing.on('close', () => pool.count(-1));
    outgoing.on('response', (incoming) => {
      this.incoming = incoming;
      listener.onHead({ status: incoming.statusCode, reason: incoming.statusMessage, fields: incoming.rawHeaders });
      incoming.on('data', (chunk) => listener.onData(chunk));
      incoming.on('end', () => listener.onEnd());
      incoming.on('error', (error) => listener.onError(error));
    });
    if (body instanceof Readable) body.pipe(outgoing);
    else outgoing.end(body ?? undefined);
  }

  pause() {
    this.isPaused = true;
    this.incoming?.pause();
  }

  resume() {
    this.isPaused = false;
    this.incoming?.resume();
    this.resumeByUndici?.();
  }

  destroy() {
    this.isOver = true;
    this.abort?.(new Error('stopped'));
    this.outgoing?.destroy();
  }
}
