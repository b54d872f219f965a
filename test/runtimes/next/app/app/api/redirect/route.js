import { withHeadgate } from 'headgate/fetch';
import { redirect } from 'next/navigation';
import { gate } from '../../../gate.js';

export const POST = withHeadgate(gate, () => redirect('/done'));
