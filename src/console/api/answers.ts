/** The answers of the Admin API, as the schemas of the gateway say. */
export type { Limit, LimitChanged, LimitEntry, LimitPreview } from '../../gateway/admin/limit-schemas.ts';
export type { ListedAccount } from '../../gateway/admin/operations/accounts.ts';
export type { Claim, MetOrphan } from '../../gateway/admin/operations/claims.ts';
export type { Instance } from '../../gateway/admin/operations/fleet.ts';
export type { Key, Status } from '../../gateway/admin/operations/status.ts';
export type { Decision, Second, Top } from '../../gateway/admin/operations/traffic.ts';
export type { Explanation, Windows } from '../../gateway/admin/operations/windows.ts';
export type { ShadowState } from '../../gateway/admin/shadow-schemas.ts';
export type { StateChange } from '../../gateway/traffic/event-feed.ts';
