/** Limits whose layers or windows do not do together what each of them seems to say. */
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { layerWarnings } from '../../src/config/layer-warnings.ts';

const shared = (...windows: string[]) => ({ allMethods: { windows, scope: 'account' } });
const perRoute = (...windows: string[]) => ({ allMethods: windows });

function warningsOf(limits: object, config: object = {}): string[] {
  const file = {
    accounts: [
      { id: 'acc_1', application: 'a', provider: 'p', plan: 'pro' },
      { id: 'acc_2', application: 'a' },
    ],
    routes: ['GET /x', 'POST /pay'].map((route) => ({ route, account: 'query.id' })),
    limits: { plans: { pro: {} }, ...limits },
    ...config,
  };
  return layerWarnings(checkConfig(file, 'test')).map(({ path, reason }) => `${path}: ${reason}`);
}

describe('a layer without a scope that replaces one count for all routes', () => {
  const text =
    'each route has its own count here, although the routes share one count in the layer that this replaces: write { "windows": […], "scope": "account" }, or "scope": "route" if this is meant';

  it('is a warning, in one line', () => {
    expect(warningsOf({ default: shared('20/1m'), plans: { pro: perRoute('20/1m') } })).toEqual([
      `limits.plans.pro.allMethods: ${text}`,
    ]);
    const limits = { default: shared('20/1m'), providers: { p: perRoute('9/1m'), q: perRoute('9/1m') } };
    expect(warningsOf({ ...limits, accounts: { acc_2: perRoute('9/1m') } })).toEqual([
      `limits.providers.p.allMethods: ${text}; and 2 more`,
    ]);
  });

  it('is judged by the layer that the account really replaces', () => {
    const limits = { default: perRoute('20/1m'), plans: { pro: shared('20/1m') } };
    expect(warningsOf({ ...limits, providers: { p: perRoute('9/1m') } })).toEqual([
      `limits.providers.p.allMethods: ${text}`,
    ]);
    expect(warningsOf({ ...limits, providers: { q: perRoute('9/1m') } })).toEqual([]);
    expect(warningsOf({ ...limits, accounts: { acc_2: perRoute('9/1m') } })).toEqual([]);
  });

  it('is none with a scope, without windows, and where the layers agree', () => {
    const meant = { allMethods: { windows: ['20/1m'], scope: 'route' } };
    for (const pro of [meant, shared('9/1m'), perRoute(), {}])
      expect(warningsOf({ default: shared('20/1m'), plans: { pro } })).toEqual([]);
    expect(warningsOf({ default: perRoute('20/1m'), plans: { pro: perRoute('9/1m') } })).toEqual([]);
  });
});

describe('a window that can never reject', () => {
  const never = (window: string, other: string) =>
    `${window} never rejects a request, because ${other} applies too and admits fewer: remove it, or correct one of the two`;

  it('is a warning beside a longer window with at most half its max', () => {
    expect(warningsOf({ default: perRoute('100/1m', '10/1d') })).toEqual([
      `limits.default.allMethods: ${never('100/1m', '10/1d')}`,
    ]);
    // Requests of one minute can lie in two days, so 19 can be accepted within it.
    expect(warningsOf({ default: perRoute('15/1m', '10/1d') })).toEqual([]);
    expect(warningsOf({ default: perRoute('100/1m', '5000/1d') })).toEqual([]);
    expect(warningsOf({ default: perRoute('100/1m', '0/1d') })).toEqual([]);
    expect(warningsOf({ default: perRoute('1/1m') }, { perAddress: ['9/1s', '2/1m'] })).toEqual([
      `perAddress: ${never('9/1s', '2/1m')}`,
    ]);
  });

  it('is a warning beside All methods, if no layer replaces that', () => {
    const common = { ...shared('20/1m'), routes: { 'POST /pay': ['1000/1m'] } };
    const text = `limits.default.routes["POST /pay"]: ${never('1000/1m', '20/1m')}`;
    expect(warningsOf({ default: common })).toEqual([text]);
    expect(warningsOf({ default: common, plans: { pro: shared('2000/1m') } })).toEqual([]);
    expect(warningsOf({ default: common, recommended: true })).toEqual([]);
    const plans = { pro: { routes: { 'GET /x': ['1000/1m'] } } };
    expect(warningsOf({ default: common, plans })).toEqual([`${text}; and 1 more`]);
    expect(warningsOf({ default: perRoute('2/1m'), plans: { pro: { ...perRoute('20/1m'), ...plans.pro } } })).toEqual([
      `limits.plans.pro.routes["GET /x"]: ${never('1000/1m', '20/1m')}`,
    ]);
  });
});
