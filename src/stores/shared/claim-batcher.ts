/** A command on a claim that is not sent yet. */
export interface PendingCommand {
  /** Its length, about. */
  readonly characters: number;
}

/** Options of {@link ClaimBatcher}. */
export interface ClaimBatcherOptions<Command extends PendingCommand> {
  /** Whether each command needs a separate call: a script in a Redis Cluster can only touch the keys of one slot. */
  readonly oneCommandPerCall: boolean;
  /** Sends commands in one call. */
  readonly send: (commands: readonly Command[]) => void;
}

/** Most commands per call. The server does nothing else during a call, and each command takes it about 10 µs. */
const MAX_COMMANDS = 32;
/** Most characters of a call with several commands, so that none waits long for the large value of another. */
const MAX_CHARACTERS = 65_536;

/** Collects the commands of one turn of the event loop, and sends them together in their order. */
export class ClaimBatcher<Command extends PendingCommand> {
  readonly #options: ClaimBatcherOptions<Command>;
  #commands: Command[] = [];

  constructor(options: ClaimBatcherOptions<Command>) {
    this.#options = options;
  }

  add(command: Command): void {
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
    let call: Command[] = [];
    let characters = 0;
    for (const command of commands) {
      if (call.length === MAX_COMMANDS || (call.length > 0 && characters + command.characters > MAX_CHARACTERS)) {
        this.#options.send(call);
        call = [];
        characters = 0;
      }
      call.push(command);
      characters += command.characters;
    }
    if (call.length > 0) this.#options.send(call);
  }
}
