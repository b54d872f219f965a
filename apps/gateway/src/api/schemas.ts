import { z } from 'zod';

/** Longest name of an account, an application, a provider, a route or a key. */
export const MAX_NAME = 1_024;
const DEFAULT_PAGE = 100;
const MAX_PAGE = 500;

/** The name of an account, an application, a provider, a route or a key. */
export const named = (what: string) => z.string().min(1).max(MAX_NAME).describe(what);

export const moment = z.string().describe('ISO 8601, in UTC');

export const reason = z
  .string()
  .regex(/^[^\p{Cc}]{0,500}$/u, 'must be at most 500 characters, without control characters')
  .default('')
  .describe('Why it is done. The log has it');

/** The parameters of a list. */
export const paging = {
  limit: z.int().min(1).max(MAX_PAGE).default(DEFAULT_PAGE).describe('Most entries of the answer'),
  cursor: z.string().optional().describe('`next` of the answer before'),
};

export const next = z.string().nullable().describe('`cursor` of the next request; null at the end');

/** Which processes an answer covers, if the gateway has workers. */
export const countedWorkers = z
  .object({
    counted: z.int().describe('Workers that answered in time. Their figures are added up'),
    of: z.int().describe('Workers that listen'),
    missing: z.array(z.int()).describe('The numbers of workers whose figures are missing'),
  })
  .optional()
  .describe('Only with `workers` in the config');

/** The error object of every error answer. */
export const problem = z
  .object({
    title: z.string(),
    detail: z.string().optional().describe('What is wrong, where, and what would be right'),
    type: z.string().describe('Tells errors apart'),
    status: z.int(),
    req_id: z.string().describe('The same as the field `x-request-id`'),
  })
  .describe('What every error answer has');

/** A block, as long as it rejects. */
export const blocked = z.object({
  scope: z
    .enum(['account', 'route', 'group'])
    .describe('What is blocked: every route of the account, only this one, or a group of the request'),
  forMs: z.int().describe('How much longer it lasts'),
  until: moment,
  reason: z.string().nullable().describe('The client reads it'),
});

/** A window of a limit, and how full it is. */
export const windowState = z.object({
  limit: z.enum(['route', 'all-methods']),
  max: z.int(),
  used: z.int().describe('At most `max`'),
  remaining: z.int(),
  durationMs: z.int(),
  resetMs: z.int().describe('Time until the window is over; 0 if it has not begun'),
  group: z.string().optional().describe('The group whose window it is; absent if it is of the account'),
  unit: z.string().optional().describe('What the window counts; absent if it counts requests'),
});
