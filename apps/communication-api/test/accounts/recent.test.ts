import { expect, test, vi } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { peopleOf } from '../support/dashboard.ts';
import { startService } from '../support/service.ts';

// With connections of its own: the embedded database would read an account after the transaction of another request.
const service = await startService({ TRUSTED_PROXIES: 'loopback' }, { kind: 'PostgreSQL' });
const { rooms } = service;
const { accounts, people } = rooms;
const { signedIn } = peopleOf(service);

test('a change is seen by the next request, also if another request read the account during the transaction', async () => {
  const { id: application } = await service.application();
  const { id } = await linkAccount(rooms, application);
  const { browser } = await signedIn('admin');
  const add = people.audit.add.bind(people.audit);
  const adding = vi.spyOn(people.audit, 'add').mockImplementation(async (...entry) => {
    expect(await accounts.findRecent(application, id)).toMatchObject({ paused_at: null });
    await add(...entry);
  });
  await browser.open(`/dashboard/applications/${application}/accounts/${id}`);
  await browser.submit('/pause');
  expect(adding).toHaveBeenCalledOnce();
  adding.mockRestore();
  const paused = await accounts.findRecent(application, id);
  expect(paused?.paused_at).toBeInstanceOf(Date);
});
