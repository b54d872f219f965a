import type { ComponentChildren, JSX } from 'preact';
import type { EnteredFault } from '../../links/wizard-sessions.ts';
import type { Field } from '../../providers/link-flow.ts';
import type { Frame } from './layout.tsx';
import { inputId, messageOf } from './parts.tsx';

interface FieldInputProps {
  readonly frame: Frame;
  readonly field: Field;
  /** The values that the user entered before; undefined: nothing was submitted yet. */
  readonly values: Readonly<Record<string, string>> | undefined;
  readonly fault: EnteredFault | undefined;
  /** Whether the label says that the field may stay empty. Default: true. */
  readonly marksOptional?: boolean | undefined;
}

/** One field of a form, with its label, its hint and its fault. */
export function FieldInput({ frame, field, values, fault, marksOptional = true }: FieldInputProps): JSX.Element {
  const { language, text } = frame;
  const { name, label } = field;
  const value = (values === undefined ? field.initial : values[name]) ?? '';
  const hint = hintOf(field, frame);
  const described = describedBy(name, hint, fault);
  const required = field.required === true;
  if (field.kind === 'checkbox')
    return (
      <div class="field">
        <label class="option" for={inputId(name)}>
          <input type="checkbox" id={inputId(name)} name={name} value="on" checked={value === 'on'} {...described} />
          <span>{label[language]}</span>
        </label>
        <Notes frame={frame} name={name} hint={hint} fault={fault} />
      </div>
    );
  if (field.kind === 'choice')
    return (
      <fieldset class="field" {...described}>
        <legend>{label[language]}</legend>
        {field.options.map((option, index) => (
          <label class="option" key={option.value}>
            <input
              type="radio"
              id={index === 0 ? inputId(name) : undefined}
              name={name}
              value={option.value}
              checked={value === option.value}
              required={required}
            />
            <span>{option.label[language]}</span>
          </label>
        ))}
        <Notes frame={frame} name={name} hint={hint} fault={fault} />
      </fieldset>
    );
  return (
    <div class="field">
      <label for={inputId(name)}>
        {label[language]} {required || !marksOptional ? null : <span class="optional">({text.optional})</span>}
      </label>
      <input
        {...inputOf(field)}
        id={inputId(name)}
        name={name}
        value={field.kind === 'password' ? undefined : value}
        required={required}
        aria-invalid={fault === undefined ? undefined : true}
        {...described}
      />
      <Notes frame={frame} name={name} hint={hint} fault={fault} />
    </div>
  );
}

const hintOf = (field: Field, { language, text }: Frame): string | undefined =>
  field.hint?.[language] ?? (field.kind === 'number' ? text.range(field.min, field.max) : undefined);

/** The attributes of an input by its kind. */
function inputOf(field: Field): JSX.InputHTMLAttributes<HTMLInputElement> {
  if (field.kind === 'number') return { type: 'text', inputMode: 'numeric', autoComplete: 'off' };
  if (field.kind === 'checkbox' || field.kind === 'choice') return {};
  // A phone would begin a name or an address with a capital letter.
  const autoComplete = field.autocomplete ?? 'off';
  return { type: field.kind, autoComplete, autoCapitalize: 'none', spellcheck: false };
}

function describedBy(
  name: string,
  hint: string | undefined,
  fault: EnteredFault | undefined,
): { 'aria-describedby'?: string } {
  const ids = [
    ...(fault === undefined ? [] : [`${inputId(name)}-fault`]),
    ...(hint === undefined ? [] : [`${inputId(name)}-hint`]),
  ];
  return ids.length === 0 ? {} : { 'aria-describedby': ids.join(' ') };
}

interface NotesProps {
  readonly frame: Frame;
  readonly name: string;
  readonly hint: ComponentChildren;
  readonly fault: EnteredFault | undefined;
}

const Notes = ({ frame, name, hint, fault }: NotesProps): JSX.Element => (
  <>
    {fault === undefined ? null : (
      <p class="fault" id={`${inputId(name)}-fault`}>
        {messageOf(fault, frame)}
      </p>
    )}
    {hint === undefined ? null : (
      <p class="hint" id={`${inputId(name)}-hint`}>
        {hint}
      </p>
    )}
  </>
);
