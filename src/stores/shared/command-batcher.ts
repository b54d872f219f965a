import { getOrCreate } from '../../base/get-or-create.ts';

/** A command that is not sent yet. */
export interface PendingCommand {
  /** Its length, about. */
  readonly characters: number;
}

/** Options of {@link CommandBatcher}. */
export interface CommandBatcherOptions<Command extends PendingCommand> {
  /** Whether each command is sent at once, by itself. */
  readonly oneCommandPerCall: boolean;
  /** Commands of different groups are sent in different calls. Without it, all can share a call. */
  readonly groupOf?: ((command: Command) => string) | undefined;
  /** Sends commands in one call. */
  readonly send: (commands: readonly Command[]) => void;
}

/** Most commands per call. The server does nothing else during a call, and each command takes it about 10 µs. */
const MAX_COMMANDS = 32;
/** Most characters of a call with several commands, so that none waits long for the large value of another. */
const MAX_CHARACTERS = 65_536;

/** Collects the commands of one turn of the event loop, and sends them together in their order. */
export class CommandBatcher<Command extends PendingCommand> {
  readonly #options: CommandBatcherOptions<Command>;
  #commands: Command[] = [];

  constructor(options: CommandBatcherOptions<Command>) {
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
    const { groupOf } = this.#options;
    const groups = new Map<string, Command[]>();
    for (const command of commands) getOrCreate(groups, groupOf?.(command) ?? '', () => []).push(command);
    for (const group of groups.values()) this.#sendAll(group);
  }

  #sendAll(commands: readonly Command[]): void {
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
