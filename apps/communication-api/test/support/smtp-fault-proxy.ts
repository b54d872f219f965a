import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, connect as tlsConnect } from 'node:tls';
import { cleanUpLater } from './clean-up.ts';
import type { Fault } from './fault.ts';

/** The steps of a mail over SMTP at which the proxy can fail. */
export const SMTP_STEPS = ['connect', 'ehlo', 'auth', 'mail', 'rcpt', 'data', 'body', 'terminator'] as const;

export type SmtpStep = (typeof SMTP_STEPS)[number];

/** A proxy in front of an SMTP server that lets one connection fail at a step. */
export interface SmtpFaultProxy {
  readonly port: number;
  /** The next connection that reaches the step fails there, once. */
  failNext(step: SmtpStep, fault: Fault): void;
  readonly hasFailed: boolean;
}

/**
 * @param upstreamPort of the server, on 127.0.0.1
 * @param certificate of the proxy, if both it and the server speak TLS from the beginning. Default: neither does
 */
export async function startSmtpFaultProxy(
  upstreamPort: number,
  certificate?: { readonly cert: string; readonly key: string },
): Promise<SmtpFaultProxy> {
  let next: { step: SmtpStep; fault: Fault } | undefined;
  let hasFailed = false;
  const sockets = new Set<Socket>();
  /** The fault of a step, which happens once. */
  const take = (step: SmtpStep): Fault | undefined => {
    if (next?.step !== step) return undefined;
    const { fault } = next;
    next = undefined;
    hasFailed = true;
    return fault;
  };
  const relay = (client: Socket): void => {
    const upstream =
      certificate === undefined ? connect(upstreamPort, '127.0.0.1') : tlsConnect(upstreamPort, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    }
    new Relay(client, upstream, take).start();
  };
  const server =
    certificate === undefined
      ? createServer(relay)
      : createTlsServer({ cert: certificate.cert, key: certificate.key }, relay);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    port: (server.address() as AddressInfo).port,
    failNext: (step, fault) => {
      hasFailed = false;
      next = { step, fault };
    },
    get hasFailed() {
      return hasFailed;
    },
  };
}

const TERMINATOR = '\r\n.\r\n';

/** One connection. It follows the conversation to know its step. */
class Relay {
  #isBody = false;
  /** The last bytes of the body: the terminator may come in two pieces. */
  #tail = '';
  /** How the answer of the server to the current step is spoilt. */
  #spoils: Fault | undefined;
  #isStalled = false;

  constructor(
    private readonly client: Socket,
    private readonly upstream: Socket,
    private readonly take: (step: SmtpStep) => Fault | undefined,
  ) {}

  start(): void {
    const { client, upstream } = this;
    client.on('data', (chunk: Buffer) => void (this.#isStalled || this.#fromClient(chunk)));
    upstream.on('data', (chunk: Buffer) => void (this.#isStalled || this.#fromServer(chunk)));
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => void (this.#isStalled || client.end()));
    const fault = this.take('connect');
    if (fault !== undefined) this.#fail(fault, fault.phase === 'before');
  }

  #fromClient(chunk: Buffer): void {
    const text = chunk.toString('latin1');
    const step = this.#stepOf(text);
    const fault = step === undefined ? undefined : this.take(step);
    if (fault === undefined || fault.phase === 'after') {
      this.#spoils = fault;
      this.upstream.write(chunk);
      this.#follow(text);
      return;
    }
    const half = chunk.subarray(0, this.#lengthBefore(text, step));
    if (fault.phase === 'in' && half.length > 0) this.upstream.write(half, () => this.#fail(fault, true));
    else this.#fail(fault, true);
  }

  /** Half of the chunk, and never the terminator. */
  #lengthBefore(text: string, step: SmtpStep | undefined): number {
    const end = step === 'terminator' ? text.lastIndexOf(TERMINATOR) + 2 : text.length;
    return Math.max(0, Math.floor(end / (step === 'terminator' ? 1 : 2)));
  }

  #stepOf(text: string): SmtpStep | undefined {
    if (this.#isBody) return (this.#tail + text).includes(TERMINATOR) ? 'terminator' : 'body';
    const verb = text.slice(0, 4).toUpperCase();
    const steps: Readonly<Record<string, SmtpStep>> = {
      EHLO: 'ehlo',
      AUTH: 'auth',
      MAIL: 'mail',
      RCPT: 'rcpt',
      DATA: 'data',
    };
    return steps[verb];
  }

  #follow(text: string): void {
    if (!this.#isBody) return;
    this.#tail = (this.#tail + text).slice(-TERMINATOR.length);
    if (this.#tail === TERMINATOR) {
      this.#isBody = false;
      this.#tail = '';
    }
  }

  #fromServer(chunk: Buffer): void {
    const spoils = this.#spoils;
    this.#spoils = undefined;
    if (spoils !== undefined) {
      this.#fail(spoils, false);
      return;
    }
    // With PIPELINING, the answers to MAIL and RCPT may come in the same piece.
    if (/^354/m.test(chunk.toString('latin1'))) this.#isBody = true;
    this.client.write(chunk);
  }

  /** @param cutsServer whether the server loses its client at once */
  #fail({ kind }: Fault, cutsServer: boolean): void {
    this.#isStalled = true;
    if (kind === 'wrong') this.client.end('lp0 on fire\r\n');
    else if (kind === 'cut') this.client.destroy();
    if (cutsServer && kind !== 'stall') this.upstream.destroy();
  }
}
