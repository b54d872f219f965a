import { describe, expect, test } from 'vitest';
import { hashRecoveryCode, newRecoveryCodes } from '../../src/security/recovery-codes.ts';
import { newTotpSecret, stepOfCode, totpUri, typedSecret } from '../../src/security/totp.ts';

const SECRET = Buffer.from('12345678901234567890');

describe('codes of an app', () => {
  // RFC 6238, appendix B, with the last six digits.
  test.each([
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_111_111_111, '050471'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ])('at %i s the code is %s', (seconds, code) => {
    expect(stepOfCode(SECRET, code, seconds * 1_000)).toBe(Math.floor(seconds / 30));
  });

  test('the step before and the step after are accepted, and no other step', () => {
    const steps = [-60, -30, 0, 30, 60].map((late) => stepOfCode(SECRET, '005924', (1_234_567_890 + late) * 1_000));
    expect(steps).toEqual([undefined, 41_152_263, 41_152_263, 41_152_263, undefined]);
  });

  test('spaces do not count, and other texts are no codes', () => {
    const read = (code: string) => stepOfCode(SECRET, code, 1_234_567_890_000);
    expect(read(' 005 924 ')).toBe(41_152_263);
    for (const code of ['', '5924', '0005924', '00592４', '005924\0', '-05924']) expect(read(code)).toBe(undefined);
  });

  test('a secret is typed in groups of base32, and its address names issuer and login', () => {
    expect(typedSecret(SECRET)).toBe('GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ');
    const uri = new URL(totpUri(SECRET, { issuer: `A: ${'\u{1f600}'.repeat(80)}`, email: 'ann@example.com' }));
    expect(uri.searchParams.get('secret')).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
    expect(uri.searchParams.get('issuer')).toBe(`A  ${'\u{1f600}'.repeat(57)}`);
    expect(decodeURIComponent(uri.pathname)).toMatch(/:ann@example\.com$/);
    expect(newTotpSecret()).toHaveLength(20);
  });
});

test('recovery codes differ, and are read as a person writes them', () => {
  const codes = newRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) expect(code).toMatch(/^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){3}$/);
  const hash = hashRecoveryCode('mem_1', '01ab-cdef-ghjk-mnpq');
  expect(hashRecoveryCode('mem_1', ' OLAB cdef GHJK-mnpq')).toBe(hash);
  expect(hashRecoveryCode('mem_2', '01ab-cdef-ghjk-mnpq')).not.toBe(hash);
});
