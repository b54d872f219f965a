import type { ComponentChildren, JSX } from 'preact';
import { CSRF_FIELD, inputId } from '../../wizard/pages/parts.tsx';
import { type FormProps, NEW_ID_FIELD } from '../here.ts';
import { type Fault, MIN_PASSWORD } from '../inputs.ts';

/** A form that is sent to the service, which checks what is entered. */
export const FormOf = ({
  action,
  csrf,
  newId,
  children,
}: FormProps & { readonly children: ComponentChildren }): JSX.Element => (
  <form method="post" action={action} noValidate>
    <input type="hidden" name={CSRF_FIELD} value={csrf} />
    {newId === undefined ? null : <input type="hidden" name={NEW_ID_FIELD} value={newId} />}
    {children}
  </form>
);

/** All faults of a page. It takes the focus, so that a screen reader begins with it. */
export const FaultSummary = ({
  faults,
  prefix = '',
}: {
  readonly faults: readonly Fault[];
  /** Of the ids of the inputs. */
  readonly prefix?: string;
}): JSX.Element | null =>
  faults.length === 0 ? null : (
    // biome-ignore lint/a11y/noAutofocus: the page was loaded because of these faults, and they are what to read first.
    <div class="summary" role="alert" tabIndex={-1} autoFocus>
      <h2>Check what you have entered</h2>
      <ul>
        {faults.map(({ field, message }) => (
          <li key={field}>{field === undefined ? message : <a href={`#${inputId(prefix + field)}`}>{message}</a>}</li>
        ))}
      </ul>
    </div>
  );

interface FieldProps {
  readonly name: string;
  readonly label: string;
  /** Default: none. */
  readonly faults?: readonly Fault[] | undefined;
  readonly hint?: string | undefined;
  /** Distinguishes the inputs of two forms on one page. */
  readonly prefix?: string | undefined;
}

/** The attributes by which an input names its fault and its hint, and whether it has a fault. */
function describe({ name, hint, faults = [], prefix = '' }: FieldProps) {
  const id = inputId(prefix + name);
  const fault = faults.find(({ field }) => field === name)?.message;
  const ids = [...(fault === undefined ? [] : [`${id}-fault`]), ...(hint === undefined ? [] : [`${id}-hint`])];
  const describedBy = ids.length === 0 ? undefined : ids.join(' ');
  return {
    id,
    fault,
    attributes: { id, name, 'aria-describedby': describedBy, ...(fault === undefined ? {} : { 'aria-invalid': true }) },
  };
}

const Notes = ({
  id,
  fault,
  hint,
}: {
  id: string;
  fault: string | undefined;
  hint: string | undefined;
}): JSX.Element => (
  <>
    {fault === undefined ? null : (
      <p class="fault" id={`${id}-fault`}>
        {fault}
      </p>
    )}
    {hint === undefined ? null : (
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
    )}
  </>
);

type TextFieldProps = FieldProps & {
  readonly value?: string | undefined;
  /** Default: `text`. */
  readonly type?: 'text' | 'email' | 'password' | 'date' | 'url';
  readonly optional?: boolean;
  readonly autocomplete?: 'name' | 'email' | 'username' | 'current-password' | 'new-password' | 'off';
};

/** An input with its label, its fault and its hint. A password is never shown again. */
export function TextField(props: TextFieldProps): JSX.Element {
  const { label, hint, value, type = 'text', optional = false, autocomplete = 'off' } = props;
  const { id, fault, attributes } = describe(props);
  return (
    <div class="field">
      <label for={id}>
        {label}
        {optional ? <span class="optional"> (optional)</span> : null}
      </label>
      <input
        type={type}
        {...attributes}
        value={type === 'password' ? undefined : value}
        required={!optional}
        autoComplete={autocomplete}
        autoCapitalize={type === 'text' ? undefined : 'none'}
        spellcheck={type === 'text'}
      />
      <Notes id={id} fault={fault} hint={hint} />
    </div>
  );
}

interface LoginFieldProps {
  readonly faults: readonly Fault[];
}

/** The address of a login. */
export const EmailField = ({ value, faults }: LoginFieldProps & { readonly value: string }): JSX.Element => (
  <TextField name="email" label="Email address" type="email" autocomplete="username" value={value} faults={faults} />
);

type PasswordFieldProps = LoginFieldProps & Partial<Pick<TextFieldProps, 'name' | 'label' | 'hint'>>;

/** The password of a login that exists. */
export const PasswordField = ({ label = 'Password', faults }: PasswordFieldProps): JSX.Element => (
  <TextField name="password" label={label} type="password" autocomplete="current-password" faults={faults} />
);

/** @param props the hint begins with how long a password must be */
export const NewPasswordField = (props: PasswordFieldProps): JSX.Element => {
  const { name = 'password', label = 'Password', hint = '', faults } = props;
  return (
    <TextField
      name={name}
      label={label}
      type="password"
      autocomplete="new-password"
      hint={`At least ${MIN_PASSWORD} characters. ${hint}`}
      faults={faults}
    />
  );
};

type SelectFieldProps = FieldProps & {
  readonly options: readonly { readonly value: string; readonly label: string }[];
  readonly value: string;
};

export function SelectField(props: SelectFieldProps): JSX.Element {
  const { label, hint, options, value: chosen } = props;
  const { id, fault, attributes } = describe(props);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select {...attributes}>
        {options.map(({ value, label: text }) => (
          <option key={value} value={value} selected={value === chosen}>
            {text}
          </option>
        ))}
      </select>
      <Notes id={id} fault={fault} hint={hint} />
    </div>
  );
}

/** An option of a filter: everything. */
export const ANY = { value: '', label: 'Any' };

/** An input of a filter. It may stay empty. */
export function SearchField(props: FieldProps & { readonly value: string }): JSX.Element {
  const { label, hint, value } = props;
  const { id, attributes } = describe(props);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input type="search" {...attributes} value={value} autoComplete="off" spellcheck={false} />
      <Notes id={id} fault={undefined} hint={hint} />
    </div>
  );
}

interface FilterFormProps {
  readonly action: string;
  /** Whether less than everything is shown. */
  readonly isFiltered: boolean;
  readonly children: ComponentChildren;
}

/** A form that filters a list: it changes nothing. */
export const FilterForm = ({ action, isFiltered, children }: FilterFormProps): JSX.Element => (
  <form method="get" action={action} class="filter">
    {children}
    <div class="deeds">
      <button type="submit">Filter</button>
      {isFiltered ? (
        <a class="button plain" href={action}>
          Show all
        </a>
      ) : null}
    </div>
  </form>
);

type ChoiceFieldProps = FieldProps & {
  readonly options: readonly { readonly value: string; readonly label: string; readonly hint: string }[];
  readonly value: string;
};

/** A choice between a few options that need an explanation. None is chosen at first. */
export function ChoiceField(props: ChoiceFieldProps): JSX.Element {
  const { name, label, hint, options, value: chosen } = props;
  const { id, fault, attributes } = describe(props);
  return (
    <fieldset class="field" id={id} tabIndex={-1} aria-describedby={attributes['aria-describedby']}>
      <legend>{label}</legend>
      {options.map(({ value, label: text, hint: more }) => (
        <label class="option" key={value}>
          <input type="radio" name={name} value={value} checked={value === chosen} />
          <span>
            <strong>{text}</strong> {more}
          </span>
        </label>
      ))}
      <Notes id={id} fault={fault} hint={hint} />
    </fieldset>
  );
}

/** A time, to the minute or to the second. */
export const Time = ({ at, to = 'minute' }: { readonly at: Date; readonly to?: 'minute' | 'second' }): JSX.Element => {
  const iso = at.toISOString();
  return <time dateTime={iso}>{`${iso.slice(0, 10)} ${iso.slice(11, to === 'minute' ? 16 : 19)} UTC`}</time>;
};

/** What a colour means. The text says it, too. */
export type Tone = 'good' | 'warn' | 'bad' | 'quiet';

export const Badge = ({ label, tone }: { readonly label: string; readonly tone: Tone }): JSX.Element => (
  <span class={`badge ${tone}`}>{label}</span>
);

/** What the state of something means, and what to do. */
export const Note = ({
  tone,
  children,
}: {
  readonly tone: Tone;
  readonly children: ComponentChildren;
}): JSX.Element => <div class={`note ${tone}`}>{children}</div>;

/** One entry of a `dl` of the class `facts`. */
export const Fact = ({
  name,
  isLong = false,
  children,
}: {
  readonly name: string;
  /** Whether it needs a line of its own. */
  readonly isLong?: boolean;
  readonly children: ComponentChildren;
}): JSX.Element => (
  <div class={isLong ? 'long' : undefined}>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

export const Day = ({ at }: { readonly at: Date }): JSX.Element => (
  <time dateTime={at.toISOString()}>{at.toISOString().slice(0, 10)}</time>
);

interface AskedProps extends FormProps {
  /** What the button does, such as `Revoke`. */
  readonly label: string;
  /** What it is done to. */
  readonly subject: string;
  /** What follows from it. */
  readonly consequence: string;
  /** Default: it does harm. */
  readonly isHarmless?: boolean;
  /** Hidden inputs of the form. */
  readonly children?: ComponentChildren;
}

/** A button that asks before it does something that cannot be undone. It needs no script. */
export const AskedButton = ({
  label,
  subject,
  consequence,
  isHarmless = false,
  children,
  ...form
}: AskedProps): JSX.Element => (
  <details class="asked">
    <summary>
      {label} <span class="hidden">{subject}</span>
    </summary>
    <div class="inside">
      <p>{consequence}</p>
      <FormOf {...form}>
        {children}
        <button type="submit" class={isHarmless ? undefined : 'bad'}>
          {label} {subject}
        </button>
      </FormOf>
    </div>
  </details>
);

/** A message after something was done. */
export const Done = ({ text }: { readonly text: string | undefined }): JSX.Element | null =>
  text === undefined ? null : (
    <p class="done" role="status">
      {text}
    </p>
  );

export const EnvironmentBadge = ({ environment }: { readonly environment: string }): JSX.Element => (
  <span class={`badge ${environment}`}>{environment === 'production' ? 'Production' : 'Development'}</span>
);

/** A link to the rest of a list. */
export const Older = ({
  href,
  label,
}: {
  readonly href: string | undefined;
  readonly label: string;
}): JSX.Element | null =>
  href === undefined ? null : (
    <p>
      <a href={href}>{label}</a>
    </p>
  );
