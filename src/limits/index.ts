/**
 * The types of limits and of their targets, clocks, and the warnings about mistakes. `createLimiter` is in `headgate`.
 * @module headgate/limits
 */

export type { AdjustTarget } from '../core/adjustment.ts';
export type { Block, BlockTarget } from '../core/block.ts';
export { type Clock, monotonicClock } from '../core/clock.ts';
export { IN_FLIGHT_CHANNEL, type InFlightEvent } from '../core/in-flight-channel.ts';
export { LEASE_CHANNEL, type LeaseEvent } from '../core/lease-channel.ts';
export type { Limit, LimitName, LimitWindow, NamedWindowInput, WindowInput } from '../core/limit.ts';
export { type MisuseCode, MisuseWarning } from '../core/misuse.ts';
export type { InFlightStatus } from '../core/slot.ts';
export type { UnitWindows, WindowSet } from '../core/window-set.ts';
export { createLeases } from '../leases/create-leases.ts';
export type { LeaseOptions, LeaseStats, Leases } from '../leases/ports.ts';
export type { BlockOptions } from './blocks.ts';
export { type Groups, groupAccount } from './groups.ts';
export type { LayeredLimits, LayerInput, LimitSet, RouteLimitInput, ScopedLimitInput } from './layer-input.ts';
export type { Receipts } from './ports.ts';
export { createReceipts, type ReceiptOptions } from './receipts.ts';
export type { InFlightOptions } from './slots.ts';
export type { RouteUsage, Usage, UsageSubject } from './usage.ts';
export type { NamedRoutes, WindowSetSource } from './window-set-source.ts';
