import type { Gate } from 'headgate';
import type { GateAnswer, Passage } from 'headgate/gate';
import type { Reply } from 'headgate/http';
import type { MaybePromise } from 'headgate/stores';
import type { Exchange } from '../exchange/exchange.ts';
import type { Refusal } from '../exchange/refusal.ts';

/**
 * The config's rules for requests, as the stages that a request goes through. A reload makes new rules. A request keeps
 * the rules that it began with.
 */
export interface Rules {
  /**
   * Prepares the exchange for any answer, before all stages: for pages of other origins, or for the proxy that asks.
   * Returns the answer to a preflight.
   */
  readonly prepare?: ((exchange: Exchange) => Reply | undefined) | undefined;
  /** Limits addresses in front of all other stages. Undefined without `perAddress`. */
  readonly limitAddress?: ((exchange: Exchange) => MaybePromise<GateAnswer | undefined>) | undefined;
  /** The stages in front of the gate. Returns the first refusal. */
  readonly admit: (exchange: Exchange) => MaybePromise<Refusal | undefined>;
  readonly gate: Pick<Gate<Exchange>, 'enter'>;
  /** Forwards the request and answers the exchange. Never throws. */
  readonly forward: (exchange: Exchange, passage: Passage) => void;
}
