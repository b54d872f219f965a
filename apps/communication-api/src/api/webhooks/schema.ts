import { z } from 'zod';
import { EVENT_TYPES, TRIGGERS } from '../../domain/event-types.ts';
import { CONVERSATION_ERRORS } from '../../webhooks/delivery.ts';
import { line } from '../text.ts';

export const MAX_URL = 2_000;
const MAX_ACCOUNTS = 100;

const ids = { id: 'whe_01kaj6q2m0e7r8s9t0v1w2x3y4', application_id: 'app_01kaj6q2m0e7r8s9t0v1w2x3y4' };
const at = '2026-11-21T12:00:00.000Z';

/** The text of an address. `checkApplicationUrl` says whether it is one. */
export const endpointUrl = line(MAX_URL).describe(
  'Receives the events. https, or http to a loopback address in a development application.',
);
const triggerEvents = z
  .array(z.enum(TRIGGERS as [string, ...string[]]))
  .min(1)
  .max(TRIGGERS.length)
  .describe('Types of events. `account.*` means every type that begins with `account.`, and `*` every type.');
const accountIds = z
  .array(z.string().max(200))
  .min(1)
  .max(MAX_ACCOUNTS)
  .nullable()
  .describe('Only events of these accounts. `null`: events of all accounts, and those without an account.');
const description = line(200).nullable().describe('What people call the endpoint.');
const enabled = z.boolean().describe('A disabled endpoint receives nothing, and its waiting events are dropped.');

export const newEndpoint = z
  .strictObject({
    url: endpointUrl,
    trigger_events: triggerEvents,
    account_ids: accountIds.default(null),
    description: description.default(null),
    enabled: enabled.default(true),
  })
  .meta({
    id: 'WebhookEndpointRequest',
    examples: [{ url: 'https://app.example/webhooks', trigger_events: ['account.*', 'email.sent'] }],
  });

export const endpointChanges = z
  .strictObject({
    url: endpointUrl.optional(),
    trigger_events: triggerEvents.optional(),
    account_ids: accountIds.optional(),
    description: description.optional(),
    enabled: enabled.optional(),
  })
  .meta({ id: 'WebhookEndpointChanges', examples: [{ enabled: true }] });

const endpointFields = {
  object: z.literal('WebhookEndpoint'),
  id: z.string(),
  application_id: z.string(),
  url: z.string(),
  trigger_events: z.array(z.string()),
  account_ids: z.array(z.string()).nullable(),
  description: z.string().nullable(),
  enabled: z.boolean(),
  disabled_reason: z
    .enum(['gone', 'failing'])
    .nullable()
    .describe('Why the service disabled it. `gone`: it answered 410. `failing`: all deliveries failed for five days.'),
  failing_since: z.iso.datetime().nullable().describe('The first failure since the last success.'),
  created_at: z.iso.datetime(),
};

const endpointExample = {
  object: 'WebhookEndpoint',
  ...ids,
  url: 'https://app.example/webhooks',
  trigger_events: ['account.*', 'email.sent'],
  account_ids: null,
  description: null,
  enabled: true,
  disabled_reason: null,
  failing_since: null,
  created_at: at,
};

export const endpointAnswer = z.object(endpointFields).meta({ id: 'WebhookEndpoint', examples: [endpointExample] });

const secret = z.string().describe('Verifies the signatures. It is shown here and never again.');

export const createdEndpoint = z
  .object({ ...endpointFields, secret })
  .meta({ id: 'WebhookEndpointCreated', examples: [{ ...endpointExample, secret: 'whsec_…' }] });

export const rotatedSecret = z
  .object({
    object: z.literal('WebhookSecret'),
    endpoint_id: z.string(),
    secret,
    previous_valid_until: z.iso.datetime().describe('Until then, the old secret signs as well.'),
  })
  .meta({
    id: 'WebhookSecret',
    examples: [{ object: 'WebhookSecret', endpoint_id: ids.id, secret: 'whsec_…', previous_valid_until: at }],
  });

export const deletedEndpoint = z
  .object({ object: z.literal('WebhookEndpointDeleted'), id: z.string() })
  .meta({ id: 'WebhookEndpointDeleted', examples: [{ object: 'WebhookEndpointDeleted', id: ids.id }] });

const event = { event_id: 'evt_01kaj6q2m0e7r8s9t0v1w2x3y4', event_type: 'email.sent' };

export const conversationAnswer = z
  .object({
    object: z.literal('WebhookConversation'),
    id: z.string(),
    endpoint_id: z.string(),
    event_id: z.string(),
    event_type: z.enum(EVENT_TYPES),
    attempt: z.number().int().min(1),
    outcome: z.enum(['delivered', 'failed']),
    status: z.number().int().nullable().describe('The status of the answer. `null`: no answer came.'),
    response: z.string().nullable().describe('The first kilobyte of the answer.'),
    error: z.enum(CONVERSATION_ERRORS).nullable().describe('Why there was no answer.'),
    duration_ms: z.number().int().min(0),
    next_attempt_at: z.iso.datetime().nullable().describe('`null`: there is no next attempt.'),
    created_at: z.iso.datetime(),
  })
  .meta({
    id: 'WebhookConversation',
    examples: [
      {
        object: 'WebhookConversation',
        id: 'whc_01kaj6q2m0e7r8s9t0v1w2x3y4',
        endpoint_id: ids.id,
        ...event,
        attempt: 1,
        outcome: 'failed',
        status: 500,
        response: 'Internal Server Error',
        error: null,
        duration_ms: 84,
        next_attempt_at: '2026-11-21T12:00:05.000Z',
        created_at: at,
      },
    ],
  });

export const redelivery = z
  .object({
    object: z.literal('WebhookRedelivery'),
    event_id: z.string(),
    endpoint_ids: z.array(z.string()).describe('The endpoints that receive the event again.'),
  })
  .meta({
    id: 'WebhookRedelivery',
    examples: [{ object: 'WebhookRedelivery', event_id: event.event_id, endpoint_ids: [ids.id] }],
  });
