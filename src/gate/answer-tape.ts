import { fieldValues } from '../http/raw-fields.ts';
import { PieceList } from './piece-list.ts';
import type { CapturedHead, CapturedResponse, ResponseRecording } from './recording.ts';

/** Status of a response that broke off before its head was written. */
const NO_HEAD: CapturedHead = { status: 500, fields: [] };

/** Options of {@link AnswerTape}. */
export interface AnswerTapeOptions {
  /** Method of the request. Default: any method but HEAD. */
  readonly method?: string | undefined;
  /**
   * Whether a copy of each piece is recorded. Needed if a buffer can change after its piece was sent.
   * @default false
   */
  readonly copy?: boolean;
}

/**
 * Records one response while it is sent, for every transport alike. Pure: it decides what is stored and what may be
 * sent, and the transport stores and sends.
 *
 * 1. The client is one piece behind, so that it cannot see the end of a response that is not stored yet. If another
 *    response may still replace this one (`storeBeforeSending`), nothing is sent before the response is stored.
 * 2. A body past `maxBytes` is not recorded, nor is one that broke off or is not as long as its own head says (I7).
 * 3. The response is stored once. Afterwards the rest is sent, unless another response replaces it.
 */
export class AnswerTape {
  readonly #recording: Pick<ResponseRecording, 'maxBytes' | 'storeBeforeSending'>;
  readonly #isHead: boolean;
  readonly #copy: boolean;
  #head: CapturedHead | undefined;
  /** The value of `content-length`, if the head contains that field. */
  #statedLength: number | undefined;
  /** Undefined if the body will not be stored, or was handed over already. */
  #recorded: PieceList | undefined = new PieceList();
  #length = 0;
  /** Not sent yet, without the newest piece. */
  readonly #unsent = new PieceList();
  #newest: Uint8Array | undefined;
  #isHandedOver = false;
  #isStored = false;
  #isDiscarded = false;

  constructor(
    recording: Pick<ResponseRecording, 'maxBytes' | 'storeBeforeSending'>,
    { method, copy = false }: AnswerTapeOptions = {},
  ) {
    this.#recording = recording;
    this.#isHead = method === 'HEAD';
    this.#copy = copy;
  }

  /** Fixes status and header fields. Call it before the first {@link write}. */
  begin({ status, fields }: CapturedHead): void {
    this.#head = { status, fields };
    const [stated] = fieldValues(fields, 'content-length');
    if (stated !== undefined) this.#statedLength = Number(stated);
  }

  /** False if a response with this head never contains a body; writes to it are ignored. */
  get hasBody(): boolean {
    const status = this.#head?.status;
    return !this.#isHead && status !== 204 && status !== 304;
  }

  /** Whether all that was written so far may still be stored. */
  get isRecording(): boolean {
    return this.#recorded !== undefined;
  }

  /**
   * Whether the head may be sent. The head of an empty response is also its end, so it waits until the response is
   * stored.
   */
  get maySendHead(): boolean {
    return this.#isStored || !(this.#recording.storeBeforeSending || !this.hasBody || this.#statedLength === 0);
  }

  /** Whether storing finished. */
  get isStored(): boolean {
    return this.#isStored;
  }

  /** Whether the rest reaches no client: it disconnected, or it gets another response. */
  get isDiscarded(): boolean {
    return this.#isDiscarded;
  }

  /** Takes the next piece of the body. */
  write(piece: Uint8Array): void {
    if (piece.length === 0 || !this.hasBody) return;
    this.#length += piece.length;
    if (this.#length > this.#recording.maxBytes) this.#recorded = undefined;
    this.#recorded?.add(this.#copy ? new Uint8Array(piece) : piece);
    if (this.#isDiscarded) return;
    if (this.#newest !== undefined) this.#unsent.add(this.#newest);
    this.#newest = piece;
  }

  /** Removes and returns the pieces that may be sent now, in order. */
  sendable(): Uint8Array[] {
    if (!this.#isStored) return this.#recording.storeBeforeSending ? [] : this.#unsent.take();
    const pieces = this.#unsent.take();
    if (this.#newest !== undefined) pieces.push(this.#newest);
    this.#newest = undefined;
    return pieces;
  }

  /**
   * The response is complete.
   * @returns what to store; undefined if it was returned before
   */
  end(): CapturedResponse | undefined {
    const pieces = this.#recorded?.take();
    this.#recorded = undefined;
    if (this.#isHandedOver) return undefined;
    this.#isHandedOver = true;
    // A body that is shorter than its own head says broke off, even if its handler ended it (RFC 9112, section 8).
    const isWhole =
      this.#head !== undefined && (!this.hasBody || this.#length === (this.#statedLength ?? this.#length));
    const { status, fields } = this.#head ?? NO_HEAD;
    if (!isWhole) return { status, fields, body: undefined, isBroken: true };
    return { status, fields, body: pieces && join(pieces) };
  }

  /**
   * Records no more, because the response broke off or because it is too long.
   * @returns what to store, without a body; undefined if it was returned before
   */
  breakOff(): CapturedResponse | undefined {
    this.#recorded = undefined;
    const captured = this.end();
    return captured && { isBroken: true, ...captured };
  }

  /**
   * Storing finished: the rest may be sent, and later writes may be sent at once.
   * @param isReplaced the client gets another response
   */
  stored(isReplaced: boolean): void {
    this.#isStored = true;
    if (isReplaced) this.discard();
  }

  /** The rest reaches no client. Recording continues (I11). */
  discard(): void {
    this.#isDiscarded = true;
    this.#unsent.take();
    this.#newest = undefined;
  }
}

/** One array with all pieces; the only piece itself, if there is one. */
function join(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const all = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
