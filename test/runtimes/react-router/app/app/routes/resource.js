import { withHeadgate } from 'headgate/fetch';
import { data, redirect } from 'react-router';
import { gate } from '../gate.js';

let runs = 0;

export const loader = withHeadgate(gate, () => ({ got: true }), { route: 'GET /resource' });

export const action = withHeadgate(
  gate,
  async ({ request }) => {
    const run = ++runs;
    const wanted = await request.text();
    if (wanted === 'data') return data({ run }, { status: 202, headers: { 'x-own': 'a' } });
    if (wanted === 'throw') throw data({ run }, { status: 422 });
    if (wanted === 'response') throw new Response(`thrown ${run}`, { status: 409, headers: { 'x-own': 'b' } });
    if (wanted === 'redirect') throw redirect(`/sent/${run}`);
    return { run };
  },
  { route: 'POST /resource' },
);
