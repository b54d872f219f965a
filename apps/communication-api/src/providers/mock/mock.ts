import type { Provider } from '../provider.ts';
import { mockLinkFlow } from './link-flow.ts';

/** A provider for trying the service: it supports every family, and nothing leaves the service. */
export const createMock = (): Provider => ({
  name: 'mock',
  title: 'Mock',
  supports: new Set(['emails', 'calendar', 'messaging', 'social']),
  link: mockLinkFlow,
});
