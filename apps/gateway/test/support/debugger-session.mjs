/**
 * Preloaded into a process that writes a heap snapshot. V8 notes where the lines of a script begin only for a debugger.
 * Without them, the snapshot searches the whole bundle for each of its functions: 20 s instead of 2.
 */
import { Session } from 'node:inspector';

const session = new Session();
session.connect();
session.post('Debugger.enable');
