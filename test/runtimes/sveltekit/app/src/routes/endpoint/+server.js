import { error, json, redirect } from '@sveltejs/kit';
import { withHeadgate } from 'headgate/fetch';
import { gate } from '../../gate.js';

let runs = 0;

export const POST = withHeadgate(gate, async ({ request }) => {
  const run = ++runs;
  const wanted = await request.text();
  if (wanted === 'error') error(422, { message: `wrong ${run}` });
  if (wanted === 'redirect') redirect(303, `/sent/${run}`);
  return json({ run }, { status: 201 });
});
