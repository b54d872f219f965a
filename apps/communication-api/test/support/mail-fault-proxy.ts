import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { cleanUpLater } from './clean-up.ts';
import type { Fault } from './fault.ts';

/** A proxy in front of a mail server that lets one step of a connection fail. */
export interface MailFaultProxy {
  readonly port: number;
  /** The next connection that comes to the step fails there, once. */
  failNext(step: string, fault: Fault): void;
  readonly hasFailed: boolean;
}

/** A part of a client's words. */
interface Piece {
  readonly length: number;
  readonly step: string;
  /** How the line that answers it begins. Undefined: it gets no answer. */
  readonly answer?: RegExp;
  /** An answer that makes no sense. */
  readonly nonsense?: string;
  /** The next piece belongs to the same step, and it may fail instead of this piece. */
  readonly isPrelude?: boolean;
}

/** Cuts a client's words into pieces. */
interface Dialect {
  /** The piece at the beginning of a text; undefined if it is not whole yet. */
  next(text: string): Piece | undefined;
}

const NONSENSE = 'lp0 on fire';

/** Of a proxy that speaks TLS from the beginning, as does the server behind it. */
interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** @param upstreamPort of the server, on 127.0.0.1. Steps: `connect`, `EHLO`, `MAIL`, …; `body`; `end` of the message */
export const startSmtpFaultProxy = (upstreamPort: number, certificate?: Certificate): Promise<MailFaultProxy> =>
  startProxy(upstreamPort, () => new Smtp(), certificate);

/** @param upstreamPort of the server, on 127.0.0.1. Steps: `connect`, `LIST`, `SEARCH`, `APPEND`, … */
export const startImapFaultProxy = (upstreamPort: number): Promise<MailFaultProxy> =>
  startProxy(upstreamPort, () => new Imap());

async function startProxy(
  upstreamPort: number,
  dialectOf: () => Dialect,
  certificate?: Certificate,
): Promise<MailFaultProxy> {
  let next: { readonly step: string; readonly fault: Fault } | undefined;
  let hasFailed = false;
  const sockets = new Set<Socket>();
  const take = (step: string): Fault | undefined => {
    if (next?.step !== step) return undefined;
    const { fault } = next;
    next = undefined;
    hasFailed = true;
    return fault;
  };
  const relay = (client: Socket): void => {
    const upstream =
      certificate === undefined ? connect(upstreamPort, '127.0.0.1') : connectTls(upstreamPort, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    }
    new Relay(client, upstream, dialectOf(), take).start();
  };
  const server = certificate === undefined ? createServer(relay) : createTlsServer({ ...certificate }, relay);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
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

/** One connection. It follows both sides, so it knows which answer belongs to which step. */
class Relay {
  #said = '';
  #answered = '';
  /** Pieces that were sent and are not answered yet. */
  readonly #open: { readonly piece: Piece; readonly fault: Fault | undefined }[] = [];
  #isBroken = false;

  constructor(
    private readonly client: Socket,
    private readonly upstream: Socket,
    private readonly dialect: Dialect,
    private readonly take: (step: string) => Fault | undefined,
  ) {}

  start(): void {
    const { client, upstream } = this;
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk.toString('latin1')));
    upstream.on('data', (chunk: Buffer) => this.#fromServer(chunk.toString('latin1')));
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => void (this.#isBroken || client.end()));
    const greeting = { length: 0, step: 'connect', answer: /^/ };
    const fault = this.take('connect');
    // The server greets a client before it says anything: there is nothing to break off.
    if (fault !== undefined && fault.phase !== 'after') this.#break(fault, greeting);
    this.#open.push({ piece: greeting, fault });
  }

  #fromClient(text: string): void {
    this.#said += text;
    while (!this.#isBroken) {
      const piece = this.dialect.next(this.#said);
      if (piece === undefined) return;
      const fault = piece.isPrelude ? undefined : this.take(piece.step);
      const half = fault?.phase === 'before' ? 0 : fault?.phase === 'in' ? Math.ceil(piece.length / 2) : piece.length;
      this.upstream.write(this.#said.slice(0, half), 'latin1', () => {
        if (fault !== undefined && fault.phase !== 'after') this.#break(fault, piece);
      });
      this.#said = this.#said.slice(piece.length);
      if (fault !== undefined && fault.phase !== 'after') this.#isBroken = true;
      else if (piece.answer !== undefined) this.#open.push({ piece, fault });
    }
  }

  #fromServer(text: string): void {
    this.#answered += text;
    let passed = '';
    for (let end = lineEnd(this.#answered); end > 0 && !this.#isBroken; end = lineEnd(this.#answered)) {
      const line = this.#answered.slice(0, end);
      const [first] = this.#open;
      if (first?.piece.answer?.test(line)) {
        if (first.fault !== undefined) {
          this.#break(first.fault, first.piece);
          break;
        }
        this.#open.shift();
      }
      passed += line;
      this.#answered = this.#answered.slice(end);
    }
    if (passed !== '' && !this.client.destroyed) this.client.write(passed, 'latin1');
  }

  #break({ kind }: Fault, { step, nonsense = NONSENSE }: Piece): void {
    this.#isBroken = true;
    // A large message must not get through to here, either.
    if (step === 'body') this.client.pause();
    if (kind === 'stall') return;
    if (kind === 'wrong') this.client.end(`${nonsense}\r\n`);
    else this.client.destroy();
    this.upstream.destroy();
  }
}

/** The length of the first line; 0 if it is not complete yet. */
const lineEnd = (text: string): number => text.indexOf('\n') + 1;

/** The last line of a reply (RFC 5321, 4.2.1). */
const REPLY = /^\d{3}(?: |\r)/;

class Smtp implements Dialect {
  #isBody = false;

  next(text: string): Piece | undefined {
    if (this.#isBody) return this.#nextOfBody(text);
    const length = lineEnd(text);
    const step = text.slice(0, 4).toUpperCase();
    if (length === 0) return undefined;
    this.#isBody = step === 'DATA';
    return { length, step, answer: REPLY };
  }

  #nextOfBody(text: string): Piece | undefined {
    const end = `\r\n${text}`.indexOf('\r\n.\r\n');
    if (end === 0) {
      this.#isBody = false;
      // An answer to something else: it says nothing about the message.
      return { length: 3, step: 'end', answer: REPLY, nonsense: `354 ${NONSENSE}` };
    }
    const length = end > 0 ? end : text.lastIndexOf('\r\n') + 2;
    return length < 2 ? undefined : { length, step: 'body' };
  }
}

class Imap implements Dialect {
  /** A command whose literal comes next. */
  #literal: Piece | undefined;

  next(text: string): Piece | undefined {
    const literal = this.#literal;
    if (literal !== undefined) {
      if (text.length < literal.length) return undefined;
      this.#literal = undefined;
      return literal;
    }
    const length = lineEnd(text);
    if (length === 0) return undefined;
    const [, tag, verb = ''] = /^(\S+) (?:UID )?(\S+)/i.exec(text.slice(0, length)) ?? [];
    const step = verb.toUpperCase();
    // The end of a command with a literal, or of a login.
    if (tag === undefined) return { length, step };
    const answer = new RegExp(`^${tag} `);
    const [, size] = /\{(\d+)\+?\}\r\n$/.exec(text.slice(0, length)) ?? [];
    const whole = { step, answer, nonsense: `${tag} BAD ${NONSENSE}` };
    if (size === undefined) return { ...whole, length };
    this.#literal = { ...whole, length: Number(size) };
    return { length, step, isPrelude: true };
  }
}
