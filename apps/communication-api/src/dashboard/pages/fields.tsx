import type { JSX } from 'preact';
import { inputId } from '../../wizard/pages/parts.tsx';
import { type Fault, MIN_PASSWORD } from '../inputs.ts';

interface FieldProps {
  readonly name: string;
  readonly label: string;
  /** Default: none. */
  readonly faults?: readonly Fault[] | undefined;
  readonly hint?: string | undefined;
  /** Distinguishes the inputs of two forms on one page. */
  readonly prefix?: string | undefined;
}

/** The attributes by which an input names its fault and its hint, and whether it is faulty. */
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
  readonly autocomplete?: 'name' | 'email' | 'username' | 'current-password' | 'new-password' | 'one-time-code' | 'off';
  /** Whether only digits are entered. */
  readonly isNumeric?: boolean;
};

/** An input with its label, its fault and its hint. A password is never shown again. */
export function TextField(props: TextFieldProps): JSX.Element {
  const { label, hint, value, type = 'text', optional = false, autocomplete = 'off', isNumeric = false } = props;
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
        inputMode={isNumeric ? 'numeric' : undefined}
        autoCapitalize={type === 'text' && !isNumeric ? undefined : 'none'}
        spellcheck={type === 'text' && !isNumeric}
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

type PasswordFieldProps = LoginFieldProps & Partial<Pick<TextFieldProps, 'name' | 'label' | 'hint' | 'prefix'>>;

/** The password of a login that exists. */
export const PasswordField = ({ label = 'Password', faults, prefix }: PasswordFieldProps): JSX.Element => (
  <TextField
    name="password"
    label={label}
    type="password"
    autocomplete="current-password"
    faults={faults}
    prefix={prefix}
  />
);

/** A code of the member's app. */
export const CodeField = (
  props: Pick<TextFieldProps, 'name' | 'label' | 'hint' | 'faults' | 'prefix'>,
): JSX.Element => <TextField {...props} autocomplete="one-time-code" isNumeric />;

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
