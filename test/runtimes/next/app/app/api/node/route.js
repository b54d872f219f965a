import { withHeadgate } from 'headgate/fetch';
import { gate } from '../../../gate.js';

export const runtime = 'nodejs';

let runs = 0;

export const GET = withHeadgate(gate, () => new Response('got'));
export const POST = withHeadgate(gate, async (request) => {
  const { length } = await request.text();
  return Response.json({ length, run: ++runs }, { status: 201 });
});
