import { headgate } from 'headgate/fetch';
import { gate } from './gate.js';

const limited = headgate(gate);
const GATED = ['/hook', '/form'];

export const handle = ({ event, resolve }) =>
  GATED.includes(event.route.id) ? limited(event, () => resolve(event)) : resolve(event);
