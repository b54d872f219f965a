import type { JSX } from 'preact';
import { TRIGGERS } from '../../domain/event-types.ts';
import type { Environment } from '../../domain/key-token.ts';
import type { Endpoint } from '../../webhooks/endpoints.ts';
import { inputId } from '../../wizard/pages/parts.tsx';
import type { FormProps } from '../here.ts';
import { boxName, type Fault, type Inputs } from '../inputs.ts';
import { TextField } from './fields.tsx';
import { FormOf } from './forms.tsx';

interface EndpointFormProps extends FormProps {
  /** The endpoint to change. Undefined: the endpoint is new. */
  readonly endpoint?: Endpoint | undefined;
  readonly environment: Environment;
  /** A form that was sent with faults. */
  readonly inputs: Inputs | undefined;
  readonly label: string;
}

/** The fields of an endpoint, in a form. */
export function EndpointForm({ endpoint, environment, inputs, label, ...form }: EndpointFormProps): JSX.Element {
  const faults = inputs?.faults ?? [];
  const isTicked = (trigger: string): boolean =>
    inputs === undefined
      ? (endpoint?.trigger_events.includes(trigger) ?? false)
      : inputs.raw(boxName('kinds', trigger)) !== '';
  return (
    <FormOf {...form}>
      <TextField
        name="url"
        label="Address"
        type="url"
        hint={
          environment === 'development'
            ? 'https, or http to this machine, such as http://localhost:3000/webhooks.'
            : 'https, such as https://app.example/webhooks.'
        }
        value={inputs?.raw('url') ?? endpoint?.url}
        faults={faults}
      />
      <TextField
        name="description"
        label="Name"
        optional
        hint="What people call the endpoint."
        value={inputs?.raw('description') ?? endpoint?.description ?? ''}
        faults={faults}
      />
      <Kinds faults={faults} isTicked={isTicked} />
      <button type="submit">{label}</button>
    </FormOf>
  );
}

/** Groups of triggers, by their first word. */
const GROUPS = [
  { title: 'Accounts', word: 'account' },
  { title: 'Emails', word: 'email' },
  { title: 'Tracking', word: 'tracking' },
  { title: 'Webhooks', word: 'webhook' },
].map(({ title, word }) => ({ title, triggers: TRIGGERS.filter((trigger) => trigger.split('.')[0] === word) }));

interface KindsProps {
  readonly faults: readonly Fault[];
  isTicked(trigger: string): boolean;
}

/** The kinds of events that an endpoint receives. */
function Kinds({ faults, isTicked }: KindsProps): JSX.Element {
  const id = inputId('kinds');
  const fault = faults.find(({ field }) => field === 'kinds')?.message;
  const described = fault === undefined ? {} : { 'aria-describedby': `${id}-fault` };
  return (
    <fieldset class="field kinds" id={id} tabIndex={-1} {...described}>
      <legend>Kinds of events</legend>
      {fault === undefined ? null : (
        <p class="fault" id={`${id}-fault`}>
          {fault}
        </p>
      )}
      <Kind trigger="*" isTicked={isTicked} says="every event, also of kinds that come later" />
      {GROUPS.map(({ title, triggers }) => (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset in a fieldset is read out with both of their names.
        <div key={title} class="group" role="group" aria-labelledby={`${id}-${title}`}>
          <p class="title" id={`${id}-${title}`}>
            {title}
          </p>
          {triggers.map((trigger) => (
            <Kind
              key={trigger}
              trigger={trigger}
              isTicked={isTicked}
              says={trigger.endsWith('*') ? 'all that begin so' : undefined}
            />
          ))}
        </div>
      ))}
    </fieldset>
  );
}

const Kind = ({
  trigger,
  says,
  isTicked,
}: {
  readonly trigger: string;
  readonly says?: string | undefined;
} & Pick<KindsProps, 'isTicked'>): JSX.Element => (
  <label class="tick">
    <input type="checkbox" name={boxName('kinds', trigger)} value="on" checked={isTicked(trigger)} />
    <span>
      <code>{trigger}</code>
      {says === undefined ? null : <span class="soft"> {says}</span>}
    </span>
  </label>
);
