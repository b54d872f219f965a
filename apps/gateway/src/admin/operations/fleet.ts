import { z } from 'zod';
import { type Operation, operation } from '../../api/operation.ts';
import { moment } from '../../api/schemas.ts';
import type { AdminContext } from '../context.ts';
import { type FleetProcess, listFleet } from '../fleet.ts';

const unknown = 'null of a program with the library, and of another version of headgate that does not say it';

const instance = z.object({
  name: z.string().describe('Host, process and four random characters'),
  self: z.boolean().describe('Whether it is the process that answers'),
  version: z.string().nullable().describe(`Of headgate; ${unknown}`),
  host: z.string().nullable(),
  startedAt: moment.nullable(),
  state: z.enum(['serving', 'draining']).nullable(),
  breaker: z.enum(['closed', 'open', 'half-open']).nullable().describe('The circuit breaker of its store'),
  decisionsPerSecond: z
    .number()
    .nullable()
    .describe('Average of ten seconds; null also of a process without an Admin API, which counts nothing'),
  revision: z.string().describe('The last change of limits that it obeys'),
  ageMs: z.number().describe('Time since the store heard of it, when it said all this'),
});

export type Instance = z.output<typeof instance>;

/** The processes with the same store. */
export function fleetOperations(context: AdminContext): Operation[] {
  return [
    operation({
      id: 'listInstances',
      method: 'GET',
      path: '/v1/instances',
      role: 'viewer',
      tag: 'Process',
      summary: 'The processes with the same store that were heard of in the last ten seconds',
      description: 'What a process says about itself is as old as `ageMs`; of the process that answers it is of now.',
      answer: z.object({ instances: z.array(instance) }),
      errors: [503],
      run: async () => ({ instances: (await listFleet(context)).map(shownInstance) }),
    }),
  ];
}

function shownInstance({ name, self, revision, ageMs, details }: FleetProcess): z.input<typeof instance> {
  return {
    name,
    self,
    version: details?.version ?? null,
    host: details?.host ?? null,
    startedAt: details === undefined ? null : new Date(details.startedAtMs).toISOString(),
    state: details?.state ?? null,
    breaker: details?.breaker ?? null,
    decisionsPerSecond: details?.perSecond ?? null,
    revision,
    ageMs,
  };
}
