import type { Provider } from '../provider.ts';
import { mockLinkFlow } from './link-flow.ts';
import { MockMailProvider } from './mail.ts';
import type { MockMailbox } from './mailbox.ts';

/** The mock provider: deterministic, without a network, and able to fail in every way that the service can report. */
export const createMock = (mailbox: MockMailbox): Provider => ({
  name: 'mock',
  title: 'Mock',
  supports: new Set(['emails', 'calendar', 'messaging', 'social']),
  link: mockLinkFlow,
  mail: new MockMailProvider(mailbox),
});
