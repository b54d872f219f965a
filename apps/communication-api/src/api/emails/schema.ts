import { z } from 'zod';
import { readAddress } from '../../domain/addresses.ts';
import { customHeaderFault } from '../../domain/custom-headers.ts';
import { listOf } from '../page.ts';
import { typedIssue } from '../validate.ts';

const MAX_RECIPIENTS = 500;
const MAX_HEADERS = 100;
export const MAX_ATTACHMENTS = 100;
/** One header line, RFC 5322. */
const MAX_LINE = 998;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a line break in a header would begin another header.
const CONTROL = /[\u0000-\u001f\u007f\u2028\u2029]/;

/** A text that becomes part of a header. */
const headerText = z
  .string()
  .max(MAX_LINE)
  .refine((text) => !CONTROL.test(text), 'must not contain line breaks or other control characters');

const address = (type: 'errors/invalid_recipient' | 'errors/unprocessable_entity') =>
  z
    .string()
    .meta({ format: 'email' })
    .transform((text, context) => {
      const read = readAddress(text);
      if (read !== undefined) return read;
      context.addIssue({ code: 'custom', message: 'not an email address', ...typedIssue(type) });
      return z.NEVER;
    });

const recipient = z.strictObject({
  identifier: address('errors/invalid_recipient'),
  display_name: headerText.optional(),
});

const customHeader = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .max(200)
      .describe('X-…, List-Unsubscribe, List-Unsubscribe-Post, Reply-To or Content-Type.'),
    value: z.string().max(MAX_LINE),
  })
  .superRefine((header, context) => {
    const fault = customHeaderFault(header);
    if (fault !== undefined)
      context.addIssue({ code: 'custom', path: ['name'], message: fault, ...typedIssue('errors/invalid_headers') });
  });

const customHeaders = z
  .array(customHeader)
  .max(MAX_HEADERS)
  .superRefine((headers, context) => {
    const names = headers.map(({ name }) => name.toLowerCase());
    const twice = names.findIndex((name, index) => names.indexOf(name) !== index);
    if (twice !== -1)
      context.addIssue({
        code: 'custom',
        path: [twice, 'name'],
        message: 'is given twice',
        ...typedIssue('errors/invalid_headers'),
      });
  });

const attachment = z.strictObject({
  filename: headerText.min(1).max(255),
  content_type: headerText.max(255).default('application/octet-stream'),
  content: z.base64().describe('The bytes in base64.'),
});

/** The request of a send. A form carries its files beside these fields. */
export const emailRequest = z
  .strictObject({
    account_id: z.string().min(1).describe('The account that sends.'),
    from: z
      .strictObject({
        display_name: headerText.optional(),
        identifier: address('errors/unprocessable_entity').optional(),
      })
      .optional()
      .describe('Default: the address of the account.'),
    to: z.array(recipient).min(1),
    cc: z.array(recipient).optional(),
    bcc: z.array(recipient).optional(),
    subject: headerText.optional(),
    body: z
      .string()
      .describe('HTML if it has a tag, else plain text. A Content-Type in custom_headers decides instead.'),
    reply_to: z
      .string()
      .min(1)
      .max(MAX_LINE)
      .optional()
      .describe('The tracking_id or the provider’s id of the email that this one answers.'),
    custom_headers: customHeaders.optional(),
    tracking_options: z
      .strictObject({
        opens: z.boolean().optional().describe('Counts how often the email is opened. Default: false.'),
        links: z
          .boolean()
          .optional()
          .describe(
            'Counts how often the http and https links of the email are followed. Default: false. ' +
              'A link with the attribute data-disable-tracking, and the links of List-Unsubscribe, stay as they are.',
          ),
        label: z.string().max(255).optional(),
        custom_domain: z
          .string()
          .max(253)
          .optional()
          .describe('Host of the tracked links: a verified tracking domain of the application.'),
      })
      .optional()
      .describe('Tracks an HTML body. A plain text body is sent as it is, also if tracking is asked for.'),
    attachments: z.array(attachment).max(MAX_ATTACHMENTS).optional(),
  })
  .superRefine(({ to, cc = [], bcc = [] }, context) => {
    const count = to.length + cc.length + bcc.length;
    if (count > MAX_RECIPIENTS)
      context.addIssue({
        code: 'custom',
        path: ['to'],
        message: `${count} recipients in to, cc and bcc; the maximum is ${MAX_RECIPIENTS}`,
      });
  })
  .meta({ id: 'EmailRequest' });

export type EmailRequest = z.output<typeof emailRequest>;

export const emailSent = z
  .object({
    object: z.literal('EmailSent'),
    tracking_id: z.string().min(1),
    provider_id: z.string().nullable(),
    provider_immutable_id: z.string().nullable().describe('Set for outlook only.'),
  })
  .meta({ id: 'EmailSent' });

export const email = z
  .object({
    object: z.literal('Email'),
    id: z.string().describe('The tracking_id.'),
    account_id: z.string(),
    state: z.enum(['sending', 'sent', 'failed', 'unknown']),
    provider_id: z.string().nullable(),
    provider_immutable_id: z.string().nullable(),
    message_id: z.string(),
    rejected: z.array(z.string()).describe('Recipients that the provider refused.'),
    error: z.object({ status: z.number(), type: z.string(), detail: z.string() }).nullable(),
    tracking: z
      .object({
        label: z.string().nullable(),
        opens: z.number().int().nullable().describe('How often persons have opened the email. Null: not tracked.'),
        clicks: z.number().int().nullable().describe('How often persons have followed its links. Null: not tracked.'),
      })
      .nullable()
      .describe(
        'Null if neither opens nor links are tracked. Programs that check emails, and image proxies of mail services, ' +
          'are not counted. At most 10,000 hits are stored per email.',
      ),
    created_at: z.iso.datetime(),
    sent_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Email' });

export const emailList = listOf('EmailList', email);
