import type { WorkerParts } from '../gateway.ts';
import type { SentEvent } from '../traffic/event-feed.ts';
import type { WorkerEvents } from './messages.ts';

const SEND_MS = 100;
/** Most events of one message. */
const MOST = 1_000;
/** The primary knows the others by itself: every worker would report the same change. */
const TYPES: readonly SentEvent['type'][] = ['decision', 'shadow', 'claim'];

/** Sends a worker's events to its primary, many in a message, and only while clients listen. */
export class EventOutbox {
  readonly #traffic: WorkerParts['traffic'];
  readonly #send: (message: WorkerEvents) => Promise<void>;
  #lastId = 0;
  #waiting: SentEvent[] = [];
  #dropped = 0;
  #isSending = false;

  /** @param send resolves when the channel has room for the next message */
  constructor(traffic: WorkerParts['traffic'], send: (message: WorkerEvents) => Promise<void>) {
    this.#traffic = traffic;
    this.#send = send;
  }

  /** Sends events from now on, or no more. Returns the events that it has not sent, as far as they are remembered. */
  turn(isOn: boolean): readonly SentEvent[] {
    const lastId = this.#traffic.tapEvents(isOn ? (event) => this.#add(event) : undefined);
    const missed = isOn ? this.#traffic.eventsSince(this.#lastId).filter(isSent) : [];
    this.#lastId = lastId;
    return missed;
  }

  #add(event: SentEvent): void {
    if (!isSent(event)) return;
    if (this.#waiting.length >= MOST) this.#dropped += 1;
    else this.#waiting.push(event);
    if (!this.#isSending) void this.#sendLater();
  }

  async #sendLater(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, SEND_MS).unref());
      const message = { events: this.#waiting, dropped: this.#dropped };
      this.#waiting = [];
      this.#dropped = 0;
      await this.#send(message);
    }
    this.#isSending = false;
  }
}

function isSent({ type }: SentEvent): boolean {
  return TYPES.includes(type);
}
