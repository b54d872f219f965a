import { z } from 'zod';
import { type Operation, operation } from '../../api/operation.ts';
import { countedWorkers, reason } from '../../api/schemas.ts';
import { refuse } from '../../exchange/refusal.ts';
import { type AdminContext, audit } from '../context.ts';

const tag = 'Process';
const body = z.strictObject({ reason });

/** Takes the process out of a load balancer, and puts it back. */
export function drainOperations(context: AdminContext): Operation[] {
  const { isReady, setReady, traffic } = context;
  return [
    operation({
      id: 'drain',
      method: 'POST',
      path: '/v1/drain',
      role: 'admin',
      tag,
      summary: '`/readyz` answers 503, so that a load balancer takes the process out',
      description: 'Requests are served on. Only SIGTERM ends the process.',
      body,
      answer: z.object({ state: z.literal('draining'), workers: countedWorkers }),
      async run({ body }, caller) {
        const workers = await setReady(false);
        audit(context, caller, 'drained', { reason: body.reason });
        traffic.onState({ state: 'draining', by: caller.name });
        return { state: 'draining' as const, ...(workers && { workers }) };
      },
    }),
    operation({
      id: 'undrain',
      method: 'POST',
      path: '/v1/undrain',
      role: 'admin',
      tag,
      summary: '`/readyz` answers 200 again',
      body,
      answer: z.object({ state: z.literal('serving'), workers: countedWorkers }),
      errors: [409],
      async run({ body }, caller) {
        const workers = await setReady(true);
        if (!isReady())
          return refuse(409, 'errors/conflict', 'The process is shutting down, which cannot be called off.');
        audit(context, caller, 'undrained', { reason: body.reason });
        traffic.onState({ state: 'serving', by: caller.name });
        return { state: 'serving' as const, ...(workers && { workers }) };
      },
    }),
  ];
}
