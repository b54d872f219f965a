import type { Selectable } from 'kysely';
import type { AuthLinkRow } from '../db/tables.ts';

/** A hosted-auth link as it is stored. */
export type Link = Selectable<AuthLinkRow>;
