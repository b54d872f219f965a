import { withHeadgate } from 'headgate/fetch';
import { gate } from '../gate.js';

let runs = 0;

export const action = withHeadgate(gate, () => ({ run: ++runs }), { route: 'POST /page' });

export default function Page({ actionData }) {
  return <p>{`run ${actionData?.run}`}</p>;
}
