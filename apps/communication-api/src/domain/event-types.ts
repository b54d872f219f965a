/** Every kind of event. */
export const EVENT_TYPES = [
  'account.connected',
  'account.reconnected',
  'account.disconnected',
  'account.errored',
  'account.recovered',
  'account.paused',
  'account.resumed',
  'account.removed',
  'account.sync.started',
  'account.sync.progress',
  'account.sync.completed',
  'account.sync.failed',
  'email.sent',
  'email.failed',
  'email.outcome_unknown',
  'email.outcome_resolved',
  'email.recipient_rejected',
  'tracking.open',
  'tracking.link',
  'webhook.endpoint_disabled',
  'webhook.test',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** The triggers that match this type: `*`, `account.*`, `account.sync.*` and `account.sync.started`. */
export function triggersOf(type: EventType): readonly string[] {
  const parts = type.split('.');
  const patterns = parts.slice(0, -1).map((_, index) => `${parts.slice(0, index + 1).join('.')}.*`);
  return ['*', ...patterns, type];
}

/** Everything that an endpoint may ask for. */
export const TRIGGERS: readonly string[] = [...new Set(EVENT_TYPES.flatMap(triggersOf))];
