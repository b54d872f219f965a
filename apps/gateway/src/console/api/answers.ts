/** The answers of the Admin API, typed by the gateway's schemas. */
export type { GroupLimit, Limit, LimitChanged, LimitEntry, LimitPreview } from '../../admin/limit-schemas.ts';
export type { ListedAccount } from '../../admin/operations/accounts.ts';
export type { Claim, MetOrphan } from '../../admin/operations/claims.ts';
export type { Instance } from '../../admin/operations/fleet.ts';
export type { Key, Status } from '../../admin/operations/status.ts';
export type { Decision, Second, Top } from '../../admin/operations/traffic.ts';
export type { Explanation, Windows } from '../../admin/operations/windows.ts';
export type { ShadowState } from '../../admin/shadow-schemas.ts';
export type { StateChange } from '../../traffic/event-feed.ts';
