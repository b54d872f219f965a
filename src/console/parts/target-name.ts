import type { LimitEntry } from '../api/answers.ts';

/** Which limit a change is about: `provider linkedin, POST /api/v1/emails`. */
export function targetName({
  account,
  provider,
  plan,
  route = 'all methods',
}: LimitEntry['changes'][number]['target']): string {
  const layer =
    account !== undefined
      ? `account ${account}`
      : provider !== undefined
        ? `provider ${provider}`
        : plan !== undefined
          ? `plan ${plan}`
          : 'default';
  return `${layer}, ${route}`;
}
