import { z } from 'zod';
import { readAddress } from '../../domain/addresses.ts';
import { customHeaderFault } from '../../domain/custom-headers.ts';
import { EMAIL_STATES } from '../../domain/email-state.ts';
import { headerTextFault } from '../../domain/header-text.ts';
import { listOf } from '../page.ts';
import { typedIssue } from '../validate.ts';

const MAX_RECIPIENTS = 500;
const MAX_HEADERS = 100;
export const MAX_ATTACHMENTS = 100;
/** One header line, RFC 5322. */
const MAX_LINE = 998;
/** Beside an address, and with each character escaped, it still fits into one header line. */
const MAX_DISPLAY_NAME = 320;

/** A text that becomes part of a header, or of a row. */
const headerText = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .superRefine((text, context) => {
      const fault = headerTextFault(text);
      if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
    });

const displayName = headerText(MAX_DISPLAY_NAME);

const address = (type: 'errors/invalid_recipient' | 'errors/unprocessable_entity') =>
  z
    .string()
    .meta({ format: 'idn-email', examples: ['ann@example.com'] })
    .transform((text, context) => {
      const read = readAddress(text);
      if (read !== undefined) return read;
      context.addIssue({ code: 'custom', message: 'not an email address', ...typedIssue(type) });
      return z.NEVER;
    });

const recipient = z.strictObject({
  identifier: address('errors/invalid_recipient'),
  display_name: displayName.optional(),
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

/** The form of a media type. Its parameters are dropped. */
export const MEDIA_TYPE = /^[\w.+-]{1,100}\/[\w.+-]{1,100}(?=$|[;\s])/;

const attachment = z.strictObject({
  filename: headerText(255).min(1),
  content_type: headerText(255).regex(MEDIA_TYPE, 'not a media type').default('application/octet-stream'),
  content: z.base64().describe('The bytes in base64.'),
});

/** The request of a send. A form carries its files beside these fields. */
export const emailRequest = z
  .strictObject({
    account_id: z.string().min(1).describe('The account that sends.'),
    from: z
      .strictObject({
        display_name: displayName.optional(),
        identifier: address('errors/unprocessable_entity').optional(),
      })
      .optional()
      .describe('Default: the address of the account.'),
    to: z.array(recipient).min(1),
    cc: z.array(recipient).optional(),
    bcc: z.array(recipient).optional(),
    subject: headerText(MAX_LINE)
      .refine(
        (text) => Buffer.byteLength(`Subject: ${text}`) <= MAX_LINE,
        `must not be longer than ${MAX_LINE - 'Subject: '.length} bytes`,
      )
      .optional(),
    body: z
      .string()
      .describe(
        'HTML if it contains a tag, else plain text. A Content-Type in custom_headers decides instead. HTML shows an ' +
          'attachment by its filename, for example `<img src="cid:logo.png">`. Such a name consists of the letters A to Z ' +
          'and a to z, digits, and `.`, `_`, `-`, `+` or `@`.',
      ),
    reply_to: headerText(MAX_LINE)
      .min(1)
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
        label: headerText(255).optional(),
        custom_domain: headerText(253)
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
  .meta({
    id: 'EmailRequest',
    // Zod drops `examples` of a schema that transforms.
    requestExamples: [
      {
        account_id: 'acc_01kaj6q2m0e7r8s9t0v1w2x3y4',
        to: [{ identifier: 'ann@example.com', display_name: 'Ann' }],
        subject: 'Hello',
        body: '<p>Hi <a href="https://example.com">there</a></p>',
        attachments: [{ filename: 'a.txt', content_type: 'text/plain', content: 'aGVsbG8=' }],
      },
    ],
  });

export type EmailRequest = z.output<typeof emailRequest>;

export const emailSent = z
  .object({
    object: z.literal('EmailSent'),
    tracking_id: z.string().min(1),
    provider_id: z.string().nullable(),
    provider_immutable_id: z.string().nullable().describe('Set for outlook only.'),
  })
  .meta({
    id: 'EmailSent',
    examples: [
      {
        object: 'EmailSent',
        tracking_id: 'eml_01kaj6r5t0e7r8s9t0v1w2x3y4',
        provider_id: '19352d3a5bd1c2f0',
        provider_immutable_id: null,
      },
    ],
  });

export const email = z
  .object({
    object: z.literal('Email'),
    id: z.string().describe('The tracking_id.'),
    account_id: z.string(),
    state: z.enum(EMAIL_STATES),
    provider_id: z.string().nullable(),
    provider_immutable_id: z.string().nullable(),
    message_id: z.string(),
    rejected: z.array(z.string()).describe('Recipients that the provider refused.'),
    error: z.object({ status: z.number(), type: z.string(), detail: z.string() }).nullable(),
    tracking: z
      .object({
        label: z.string().nullable(),
        opens: z.number().int().nullable().describe('How often persons opened the email. Null: not tracked.'),
        clicks: z.number().int().nullable().describe('How often persons followed its links. Null: not tracked.'),
      })
      .nullable()
      .describe(
        'Null if neither opens nor links are tracked. Programs that check emails, and image proxies of mail services, ' +
          'are not counted. At most 10,000 hits are stored per email.',
      ),
    created_at: z.iso.datetime(),
    sent_at: z.iso.datetime().nullable(),
  })
  .meta({
    id: 'Email',
    examples: [
      {
        object: 'Email',
        id: 'eml_01kaj6r5t0e7r8s9t0v1w2x3y4',
        account_id: 'acc_01kaj6q2m0e7r8s9t0v1w2x3y4',
        state: 'sent',
        provider_id: '19352d3a5bd1c2f0',
        provider_immutable_id: null,
        message_id: '<5f0c1a52@example.com>',
        rejected: [],
        tracking: { label: 'welcome', opens: 1, clicks: 0 },
        error: null,
        created_at: '2026-11-21T12:00:00.000Z',
        sent_at: '2026-11-21T12:00:00.120Z',
      },
    ],
  });

const emailList = listOf('EmailList', email);

const examplesOf = (schema: z.ZodType): readonly unknown[] => (schema.meta()?.examples ?? []) as readonly unknown[];

/** One email, or a list of emails: `object` says which. */
export const emailOrList = z
  .discriminatedUnion('object', [email, emailList])
  .meta({ id: 'EmailOrList', examples: [...examplesOf(emailList), ...examplesOf(email)] as never });
