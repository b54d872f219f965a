import type { ComponentChildren, JSX } from 'preact';
import { CSRF_FIELD, inputId } from '../../wizard/pages/parts.tsx';
import { type FormProps, NEW_ID_FIELD } from '../here.ts';
import type { Fault } from '../inputs.ts';

/** A form that is sent to the service, which checks the entered values. */
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
  /** Begins the ids of the inputs. */
  readonly prefix?: string;
}): JSX.Element | null =>
  faults.length === 0 ? null : (
    // biome-ignore lint/a11y/noAutofocus: the page was loaded because of these faults, and they are what to read first.
    <div class="summary" role="alert" tabIndex={-1} autoFocus>
      <h2>Check your entries</h2>
      <ul>
        {faults.map(({ field, message }) => (
          <li key={field}>{field === undefined ? message : <a href={`#${inputId(prefix + field)}`}>{message}</a>}</li>
        ))}
      </ul>
    </div>
  );

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

interface AskedProps extends FormProps {
  /** The action of the button, such as `Revoke`. */
  readonly label: string;
  /** The object of the action. */
  readonly subject: string;
  /** The consequence of the action. */
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

interface NewEntryProps {
  /** The new entry, such as `an endpoint`. */
  readonly label: string;
  /** The entries of the list. */
  readonly entries: string;
  /** Whether the role of the member allows it. */
  readonly isAllowed: boolean;
  /** Whether the form is shown before it is asked for. */
  readonly isOpen: boolean;
  readonly children: ComponentChildren;
}

/** The form for a new entry of a list. */
export const NewEntry = ({ label, entries, isAllowed, isOpen, children }: NewEntryProps): JSX.Element =>
  isAllowed ? (
    <details class="panel" open={isOpen}>
      <summary>Create {label}</summary>
      <div class="inside">{children}</div>
    </details>
  ) : (
    <p class="soft">Your role may only look at the {entries} of a production application.</p>
  );
