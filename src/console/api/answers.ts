/** The answers of the Admin API, as the schemas of the gateway say. */
export type { Instance } from '../../gateway/admin/operations/fleet.ts';
export type { Status } from '../../gateway/admin/operations/status.ts';
export type { Second, Top } from '../../gateway/admin/operations/traffic.ts';
