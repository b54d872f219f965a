import type { Account } from '../../accounts/accounts.ts';
import { ServiceError } from '../../domain/service-error.ts';
import { type Draft, isHtml } from '../../mail/compose.ts';
import type { Rooms } from '../../rooms.ts';
import { TrackedHtml } from '../../tracking/tracked-html.ts';
import { unsubscribeTargets } from '../../tracking/tracked-link.ts';
import type { EmailRequest } from './schema.ts';

/** The database refuses some other texts. */
const HOST = /^[a-z0-9.-]+$/;

/**
 * Makes the tracked body of an email from the id of its send. Undefined if the body stays as it is.
 * @throws ServiceError 422 if the application may not use the domain, or if the body cannot be tracked
 */
export async function trackingOf(
  { applications, tracking, config }: Rooms,
  account: Account,
  { tracking_options: options = {} }: EmailRequest,
  draft: Draft,
): Promise<((sendId: string) => string) | undefined> {
  const { opens = false, links = false, custom_domain: domain } = options;
  const host = domain?.toLowerCase();
  if (
    host !== undefined &&
    !(HOST.test(host) && (await applications.ownsDomain(account.application_id, host, 'tracking')))
  )
    throw new ServiceError(
      422,
      'errors/unprocessable_entity',
      'tracking_options.custom_domain: not a verified tracking domain of your application.',
    );
  if (!(opens || links) || !isHtml(draft)) return undefined;
  const except = unsubscribeTargets(draft.customHeaders);
  const html = await TrackedHtml.read(draft.body, { opens, links, except });
  const origin = host === undefined ? config.TRACKING_URL : `https://${host}`;
  const { tokens } = tracking;
  return (sendId) =>
    html.render(
      (link) => `${origin}/t/l/${tokens.sealLink({ sendId, ...link })}`,
      () => `${origin}/t/o/${tokens.sealPixel(sendId)}`,
    );
}
