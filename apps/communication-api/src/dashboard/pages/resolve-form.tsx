import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import type { FoundOutcome } from '../../journal/resolve.ts';
import type { Send } from '../../journal/send-records.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import { emailPath } from '../paths.ts';
import { ChoiceField } from './fields.tsx';
import { FormOf } from './forms.tsx';

export const FOUND_OUTCOMES = ['sent', 'not_sent'] as const satisfies readonly FoundOutcome[];

/** For the audit log. */
export const FOUND_WORDS: Readonly<Record<FoundOutcome, string>> = { sent: 'as sent', not_sent: 'as not sent' };

interface ResolveFormProps {
  readonly here: Here;
  readonly application: Application;
  readonly email: Send;
  readonly inputs: Inputs;
}

/** The form by which a person enters the outcome of an email whose outcome is unknown. */
export const ResolveForm = ({ here, application, email, inputs }: ResolveFormProps): JSX.Element => (
  <section class="panel" aria-labelledby="resolve">
    <h2 id="resolve">Resolve this email</h2>
    <p>
      Look into the mailbox: is the email with the Message-ID <code>{email.message_id}</code> in its folder of sent
      mail, or did a recipient get it?
    </p>
    <p>
      Your answer cannot be taken back. The event <code>email.outcome_resolved</code> reports it to the application.
    </p>
    <FormOf {...here.form(emailPath(application.id, email.id, 'resolve'))}>
      <ChoiceField
        name="outcome"
        label="What became of it?"
        value={inputs.raw('outcome')}
        faults={inputs.faults}
        options={[
          {
            value: 'sent',
            label: 'It was sent.',
            hint: 'A retry with the same Idempotency-Key gets 201, and nothing is sent.',
          },
          {
            value: 'not_sent',
            label: 'It was not sent.',
            hint: 'It counts as failed, for good. A retry with the same Idempotency-Key gets 409 errors/operation_canceled, and nothing is sent. To send it, the application uses a new key. If you are wrong, its recipients then get it twice.',
          },
        ]}
      />
      <button type="submit">Resolve the email</button>
    </FormOf>
  </section>
);
