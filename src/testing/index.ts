/**
 * Tests for your own stores: suites, models, and a fake clock.
 * @module headgate/testing
 */

export {
  type Arbitraries,
  type ArbitrariesOptions,
  type Command,
  createArbitraries,
  type History,
} from './arbitraries.ts';
export { type ClaimAction, type ClaimArbitraries, createClaimArbitraries } from './claim-arbitraries.ts';
export { type ClaimModel, createClaimModel } from './claim-model.ts';
export { type ClaimStoreSubject, claimStoreSuite } from './claim-store-suite.ts';
export { createFakeClock, type FakeClock } from './fake-clock.ts';
export { type LimitStoreSubject, limitStoreSuite, type SuiteRunner } from './limit-store-suite.ts';
export { createModel, type Model, type ModelCharge, type ModelDecision } from './model.ts';
