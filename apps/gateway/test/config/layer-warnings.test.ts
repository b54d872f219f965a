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

it('a layer without a scope, which counts as the layer does that it replaces, causes no warning', () => {
  const pro = perRoute('9/1m');
  expect(warningsOf({ default: shared('20/1m'), plans: { pro }, providers: { p: pro } })).toEqual([]);
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
