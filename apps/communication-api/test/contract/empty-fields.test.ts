import { expect, test } from 'vitest';
import type { ApiDocument, JsonSchema } from '../../src/api/document.ts';
import { mailClient, part } from '../support/mail-client.ts';
import { operationsOf } from '../support/operations.ts';
import { startService } from '../support/service.ts';

const service = await startService();
const application = await service.application();
const document = service.app.swagger() as unknown as ApiDocument;

const bodies = operationsOf(document).flatMap(({ method, path, operation }) => {
  const { $ref } = operation.requestBody?.content['application/json']?.schema ?? {};
  const schema = typeof $ref === 'string' ? document.components.schemas[$ref.split('/').at(-1) ?? ''] : undefined;
  return schema === undefined ? [] : [[operation.operationId, { method, path, schema }] as const];
});

/** The answer to a form with the example of a schema, changed. */
async function answerTo(
  { method, path, schema }: { readonly method: string; readonly path: string; readonly schema: JsonSchema },
  change: (fields: Map<string, string>) => void,
): Promise<unknown> {
  const [example] = schema.examples as readonly object[];
  const entries = Object.entries(example ?? {}).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const fields = new Map(entries as [string, string][]);
  change(fields);
  const answer = await fetch(service.url + path.replace(/\{[^}]+\}/, 'x'), {
    method,
    headers: { 'x-api-key': application.token },
    body: new URLSearchParams([...fields]),
  });
  const { detail, type } = (await answer.json()) as { readonly detail?: string; readonly type?: string };
  return { status: answer.status, detail, type };
}

test.each(bodies)('%s: an optional field of a form that is empty is absent', async (_, body) => {
  const { properties = {}, required = [] } = body.schema as { properties?: object; required?: string[] };
  for (const name of Object.keys(properties).filter((each) => !required.includes(each)))
    expect(await answerTo(body, (fields) => fields.set(name, '')), name).toEqual(
      await answerTo(body, (fields) => fields.delete(name)),
    );
});

test('an email can be sent by an HTML form in which only the required fields are filled in', async () => {
  const { accountId, form, newest } = await mailClient(service, application);
  const empty = ['subject', 'reply_to', 'cc', 'bcc', 'from[identifier]', 'from[display_name]', 'custom_headers'];
  const options = ['tracking_options[label]', 'tracking_options[opens]', 'tracking_options[custom_domain]'];
  const parts = [
    ...[part('account_id', accountId), part('to[0][identifier]', 'ann@example.com'), part('to[0][display_name]', '')],
    ...[...empty, ...options].map((name) => part(name, '')),
    part('body', 'Hi'),
    // Of an input of files.
    { name: 'attachments', value: '', filename: '', type: 'application/octet-stream' },
  ];
  expect(await form(parts)).toMatchObject({ status: 201 });
  const { mail } = await newest();
  expect([mail.subject, mail.attachments]).toEqual([undefined, []]);
});

test('a required field that is empty, and an empty field that does not exist, are refused', async () => {
  const { accountId, form } = await mailClient(service, application);
  const valid = [part('account_id', accountId), part('to', [{ identifier: 'ann@example.com' }]), part('body', 'Hi')];
  const detailOf = async (name: string): Promise<unknown> =>
    (await form([...valid.filter((each) => each.name !== name), part(name, '')])).json.detail;
  expect(await detailOf('account_id')).toMatch(/^account_id: /);
  expect(await detailOf('to')).toMatch(/^to\[0\]: /);
  expect(await detailOf('replyto')).toBe('unknown field "replyto"');
});
