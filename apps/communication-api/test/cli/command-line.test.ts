import { expect, test } from 'vitest';
import { parseCommandLine } from '../../src/cli/command-line.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const parse = (...args: string[]) => parseCommandLine(args, NOW);

test('the default command is start', () => {
  expect(parse()).toMatchObject({ command: 'start', subject: undefined });
});

test('create-key takes its flags', () => {
  expect(
    parse(
      'create-key',
      '--application',
      'Shop',
      '--environment',
      'production',
      '--name',
      'ci',
      '--expires',
      '2027-01-01',
    ),
  ).toEqual({
    command: 'create-key',
    flags: { application: 'Shop', environment: 'production', name: 'ci', expires: new Date('2027-01-01') },
    subject: undefined,
    to: undefined,
    waitSeconds: 0,
  });
});

test('restore takes a file', () => {
  expect(parse('restore', 'a.tar.gz')).toMatchObject({ command: 'restore', subject: 'a.tar.gz' });
});

test('check-account takes an account, and where to send to', () => {
  expect(parse('check-account', 'acc_1', '--to', 'me@example.com')).toMatchObject({
    command: 'check-account',
    subject: 'acc_1',
    to: 'me@example.com',
  });
});

test('reset-second-factor takes a login', () => {
  expect(parse('reset-second-factor', 'ann@example.com').subject).toBe('ann@example.com');
});

test('health may wait', () => {
  expect([parse('health').waitSeconds, parse('health', '--wait', '80').waitSeconds]).toEqual([0, 80]);
});

test('help is a command and a flag of each command', () => {
  expect([parse('help').command, parse('-h').command, parse('backup', '--help').command]).toEqual(
    Array(3).fill('help'),
  );
});

test.each([
  [['strat'], /unknown command "strat" \(use start, migrate/],
  [['restore'], /restore: a file is missing/],
  [['restore', 'a', 'b'], /restore: unexpected "b"/],
  [['backup', 'a'], /backup: unexpected "a"/],
  [['start', '--name', 'x'], /start: unexpected --name/],
  [['health', '--wait', 'long'], /--wait: "long" \(use whole seconds/],
  [['doctor', '--wait', '1'], /doctor: unexpected --wait \(only health has it\)/],
  [['check-account'], /check-account: an account is missing \(use check-account ID\)/],
  [['check-account', 'acc_1', '--name', 'x'], /check-account: unexpected --name \(only create-key has it\)/],
  [['backup', '--to', 'x'], /backup: unexpected --to \(only check-account has it\)/],
  [['create-key', '--nmae', 'x'], /Unknown option '--nmae'/],
  [['create-key', '--environment', 'test'], /--environment: "test" \(use development or production\)/],
  [['create-key', '--expires', 'soon'], /--expires: "soon" \(use a time/],
  [['create-key', '--expires', '2025-01-01'], /--expires: "2025-01-01" is in the past/],
  [['create-key', '--name', ' '], /--name: must not be empty/],
])('%j is refused with exit code 2', (args, message) => {
  expect(() => parse(...args)).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) }),
  );
});
