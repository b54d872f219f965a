/** A command on a claim that is not sent yet. */
export interface PendingCommand {
  readonly key: string;
  /** Its arguments for `claim.lua`, without the time. */
  readonly args: readonly string[];
  /** Called with the answer: the time, then the command's part of the reply. Throws if the answer is not valid. */
  settle(answer: unknown): void;
  reject(error: unknown): void;
}

/** Options of {@link ClaimBatcher}. */
export interface ClaimBatcherOptions {
  /** Whether each command needs a separate call: a script in a cluster can only touch the keys of one slot. */
  readonly oneCommandPerCall: boolean;
  /** Sends commands in one call. */
  readonly send: (commands: readonly PendingCommand[]) => void;
}

/** Most commands per call. The server does nothing else during a call, and each command takes it about 10 µs. */
const MAX_COMMANDS = 32;
/** Most characters of a call with several commands, so that none waits long for the large value of another. */
const MAX_CHARACTERS = 65_536;

/** Collects the commands of one turn of the event loop, and sends them together in their order. */
export class ClaimBatcher {
  readonly #options: ClaimBatcherOptions;
  #commands: PendingCommand[] = [];

  constructor(options: ClaimBatcherOptions) {
    this.#options = options;
  }

  add(command: PendingCommand): void {
    if (this.#options.oneCommandPerCall) {
      this.#options.send([command]);
      return;
    }
    if (this.#commands.length === 0) setImmediate(() => this.#endTurn());
    this.#commands.push(command);
  }

  #endTurn(): void {
    const commands = this.#commands;
    this.#commands = [];
    let call: PendingCommand[] = [];
    let characters = 0;
    for (const command of commands) {
      let own = command.key.length;
      for (const arg of command.args) own += arg.length;
      if (call.length === MAX_COMMANDS || (call.length > 0 && characters + own > MAX_CHARACTERS)) {
        this.#options.send(call);
        call = [];
        characters = 0;
      }
      call.push(command);
      characters += own;
    }
    if (call.length > 0) this.#options.send(call);
  }
}
