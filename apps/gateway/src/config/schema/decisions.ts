import { z } from 'zod';
import { listener } from './listener.ts';
import { secret } from './secret.ts';

/** A shorter one can be guessed by a reader of a receipt. The library wants as many. */
const SHORTEST_SECRET = 32;

/** The `decisions` of the config. */
export const decisions = listener(8082).extend({
  secret: secret(
    z.string().regex(new RegExp(`^.{${SHORTEST_SECRET},}$`, 's'), `must have at least ${SHORTEST_SECRET} characters`),
  )
    .optional()
    .describe(
      'Signs receipts, with which a charge is settled or refunded later; the same for all gateways of one store. Without it there are no receipts',
    ),
});
