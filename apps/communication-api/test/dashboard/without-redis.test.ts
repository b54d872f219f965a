/** Several processes without Redis: each counts for itself, and the service says so. */
import { expect, test } from 'vitest';
import type { MemberRole } from '../../src/domain/member-roles.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { newMember } from '../support/dashboard.ts';
import { startService, type TestService } from '../support/service.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

const WARNING = '2 processes answer requests without Redis';
const { url: DATABASE_URL, drop } = await createTestDatabase();
cleanUpLater(drop);
const one = await startService({ DATABASE_URL });

/** What was logged about Redis. */
const logged = (service: TestService): readonly string[] =>
  service
    .logged()
    .split('\n')
    .filter((line) => line.includes('REDIS_URL'))
    .map((line) => (JSON.parse(line) as { msg: string }).msg);
const look = (service: TestService) => service.rooms.separateCounters?.look();

async function pageOf(role: MemberRole): Promise<string> {
  const browser = new PlainBrowser(one.url);
  browser.cookies.set('dashboard', await one.rooms.people.sessions.create(await newMember(one.db, role)));
  await browser.open('/dashboard/applications');
  return browser.text;
}

test('an only process warns once, and the dashboard says nothing', async () => {
  for (let i = 0; i < 3; i++) await look(one);
  expect(logged(one)).toEqual([expect.stringMatching(/^REDIS_URL is not set: each process counts/)]);
  expect(await pageOf('owner')).not.toContain('without Redis');
});

test('each change of the number of processes is logged once, and Admins and Owners see it', async () => {
  // A worker answers no requests.
  const worker = await startService({ DATABASE_URL, ROLE: 'worker' });
  expect([logged(worker), worker.rooms.separateCounters]).toEqual([[], undefined]);
  await look(one);
  expect(logged(one)).toHaveLength(1);
  const other = await startService({ DATABASE_URL });
  for (let i = 0; i < 3; i++) await look(one);
  for (const service of [one, other])
    expect(logged(service).slice(1)).toEqual([
      expect.stringMatching(/^several processes answer requests without REDIS_URL/),
    ]);
  expect(await pageOf('admin')).toContain(WARNING);
  expect(await pageOf('owner')).toContain(WARNING);
  expect(await pageOf('member')).not.toContain('without Redis');
  await other.instances.close();
  for (let i = 0; i < 3; i++) await look(one);
  expect(logged(one).slice(2)).toEqual(['no other process answers requests without REDIS_URL any more']);
  expect(await pageOf('owner')).not.toContain('without Redis');
});
