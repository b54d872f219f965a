import { expect, test } from 'vitest';
import { newToken } from '../../src/domain/key-token.ts';
import { createLog } from '../../src/observability/log.ts';

test('of an error, only its text is logged, not the connection that a library has attached', () => {
  const lines: string[] = [];
  const log = createLog('info', { write: (text) => void lines.push(text) });
  const client = { secretKey: 424_242, password: 'hunter22' };
  log.warn({ err: Object.assign(new Error('ended'), { code: 'ECONNRESET', client }) }, 'lost');
  expect(JSON.parse(lines.join('')).err).toEqual({
    type: 'Error',
    message: 'ended',
    code: 'ECONNRESET',
    stack: expect.stringContaining('Error: ended'),
  });
});

test('a token is not logged in any field', () => {
  const lines: string[] = [];
  const log = createLog('info', { write: (text) => void lines.push(text) });
  const token = newToken('scoped', 'production');
  log.info({ err: new Error(`no answer for ${token}`), header: token }, `sent with ${token}`);
  const written = lines.join('');
  expect(written).not.toContain(token.slice(-49));
  expect(written).toContain('sent with ck_scp_…');
});
