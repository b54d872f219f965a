import { href } from '../route.ts';
import { layerText, type Target } from './target.ts';

/** `provider linkedin, POST /api/v1/emails`; an account leads to its page. */
export function TargetName({ target, isLayer = false }: { target: Target; isLayer?: boolean }) {
  const { account, route } = target;
  const layer = layerText(target);
  return (
    <>
      {account === undefined ? layer : <a href={href('accounts', account)}>{layer}</a>}
      {!isLayer && `, ${route ?? 'all methods'}`}
    </>
  );
}
