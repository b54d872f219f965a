import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** The end of a dialogue instead of an answer: the server ends the connection, resets it, or says nothing more. */
export type Cut = 'fin' | 'reset' | 'silence';
type Answer = string | Cut;

/** The answers of a mail server. Each stage that is not given succeeds. */
export interface SmtpScript {
  readonly greeting?: Answer;
  readonly ehlo?: Answer;
  readonly auth?: Answer;
  readonly mail?: Answer;
  readonly rcpt?: (address: string) => Answer | undefined;
  readonly data?: Answer;
  /** After so many bytes of the message, this happens. */
  readonly during?: { readonly bytes: number; readonly answer: Answer };
  /** After the whole message. */
  readonly end?: Answer;
}

/** A mail server that follows a script, and counts the emails that it got. */
export interface ScriptedSmtp {
  readonly port: number;
  script: SmtpScript;
  /** Connections since the start. */
  connections: number;
  /** The messages that were received to their end, with their recipients, whatever was answered. */
  readonly messages: { readonly recipients: readonly string[]; readonly text: string }[];
  /** The number of messages that the server promised to send. */
  accepted: number;
  /** Ends every connection, as a server does with idle ones. */
  endConnections(): Promise<void>;
  close(): Promise<void>;
}

const CUTS: ReadonlySet<string> = new Set(['fin', 'reset', 'silence']);

/** @param extensions lines of the answer to EHLO beside AUTH */
export async function startScriptedSmtp(
  extensions: readonly string[] = ['PIPELINING', '8BITMIME'],
): Promise<ScriptedSmtp> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    state.connections++;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => undefined);
    void converse(socket, state, extensions);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const state: ScriptedSmtp = {
    port: (server.address() as AddressInfo).port,
    script: {},
    connections: 0,
    messages: [],
    accepted: 0,
    async endConnections() {
      const closed = [...sockets].map((socket) => once(socket, 'close'));
      for (const socket of sockets) socket.end();
      await Promise.all(closed);
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return state;
}

async function converse(socket: Socket, state: ScriptedSmtp, extensions: readonly string[]): Promise<void> {
  const session = new Session(socket, state, extensions);
  for await (const line of createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY })) session.take(line);
}

/** One connection. */
class Session {
  #isCut = false;
  #recipients: string[] = [];
  /** The lines of the message that is being received. */
  #lines: string[] | undefined;
  #bytes = 0;
  #hasSender = false;

  constructor(
    private readonly socket: Socket,
    private readonly state: ScriptedSmtp,
    private readonly extensions: readonly string[],
  ) {
    this.#say(state.script.greeting ?? '220 mail.test ESMTP');
  }

  take(line: string): void {
    if (this.#isCut) return;
    if (this.#lines !== undefined) this.#takeOfMessage(this.#lines, line);
    else this.#takeCommand(line);
  }

  #takeOfMessage(lines: string[], line: string): void {
    const { script } = this.state;
    this.#bytes += line.length + 2;
    if (line !== '.') {
      lines.push(line.replace(/^\./, ''));
      if (script.during !== undefined && this.#bytes > script.during.bytes) this.#say(script.during.answer);
      return;
    }
    this.state.messages.push({ recipients: this.#recipients, text: lines.join('\r\n') });
    this.#lines = undefined;
    const answer = script.end ?? '250 2.0.0 Ok: queued';
    if (answer.startsWith('2')) this.state.accepted++;
    this.#say(answer);
  }

  #takeCommand(line: string): void {
    const { script } = this.state;
    const [verb = ''] = line.toUpperCase().split(/[ :]/);
    if (verb === 'EHLO') this.#say(script.ehlo ?? this.#hello());
    else if (verb === 'AUTH') this.#say(script.auth ?? '235 2.7.0 Ok');
    else if (verb === 'MAIL') this.#mail(script.mail ?? '250 2.1.0 Ok');
    else if (verb === 'RCPT') this.#rcpt(line);
    else if (verb === 'DATA') this.#data();
    else if (verb === 'QUIT') this.socket.end('221 2.0.0 Bye\r\n');
    else if (verb === 'RSET') this.#say('250 2.0.0 Ok');
    else this.#say('502 5.5.2 Unknown command');
  }

  #hello(): string {
    return ['250-mail.test', ...this.extensions.map((each) => `250-${each}`), '250 AUTH PLAIN'].join('\r\n');
  }

  /** Without a sender, DATA is refused. */
  #mail(answer: Answer): void {
    this.#recipients = [];
    this.#hasSender = answer.startsWith('2');
    this.#say(answer);
  }

  #rcpt(line: string): void {
    const [, address = ''] = /<(.*)>/.exec(line) ?? [];
    const answer = this.state.script.rcpt?.(address) ?? '250 2.1.5 Ok';
    if (answer.startsWith('2')) this.#recipients.push(address);
    this.#say(answer);
  }

  #data(): void {
    const isValid = this.#hasSender && this.#recipients.length > 0;
    const answer = isValid ? (this.state.script.data ?? '354 Go on') : '554 5.5.1 No valid recipients';
    if (answer.startsWith('3')) [this.#lines, this.#bytes] = [[], 0];
    this.#say(answer);
  }

  #say(answer: Answer): void {
    if (CUTS.has(answer)) {
      this.#isCut = true;
      if (answer === 'fin') this.socket.end();
      if (answer === 'reset') this.socket.resetAndDestroy();
      return;
    }
    // endConnections() may come first.
    if (!this.socket.writable) return;
    this.socket.write(`${answer}\r\n`);
    if (!answer.startsWith('421')) return;
    this.#isCut = true;
    this.socket.end();
  }
}
