import type { Account } from '../../accounts/accounts.ts';
import { type Draft, isHtml } from '../../mail/compose.ts';
import type { Rooms } from '../../rooms.ts';
import { TrackedHtml } from '../../tracking/tracked-html.ts';
import { unsubscribeTargets } from '../../tracking/tracked-link.ts';
import { customDomain } from '../domains/custom-domain.ts';
import type { EmailRequest } from './schema.ts';

/**
 * Makes the tracked body of an email from the id of its send. Undefined if the body stays as it is.
 * @throws ServiceError 422 if the application may not use the domain, or if the body cannot be tracked
 */
export async function trackingOf(
  rooms: Rooms,
  account: Account,
  { tracking_options: options = {} }: EmailRequest,
  draft: Draft,
): Promise<((sendId: string) => Promise<string>) | undefined> {
  const { opens = false, links = false, custom_domain: domain } = options;
  const field = 'tracking_options.custom_domain';
  const host =
    domain === undefined
      ? undefined
      : await customDomain(rooms, account.application_id, 'tracking', { field, text: domain });
  if (!(opens || links) || !isHtml(draft)) return undefined;
  const except = unsubscribeTargets(draft.customHeaders);
  const html = await TrackedHtml.read(draft.body, { opens, links, except });
  const origin = host === undefined ? rooms.config.TRACKING_URL : `https://${host}`;
  const { tokens } = rooms.tracking;
  return (sendId) =>
    html.render(
      (link) => `${origin}/t/l/${tokens.sealLink({ sendId, ...link })}`,
      () => `${origin}/t/o/${tokens.sealPixel(sendId)}`,
    );
}
