import type { JSX } from 'preact';
import type { LimitLayer } from '../../limits/account-limits.ts';
import type { FaultyForm } from '../faulty-form.ts';
import type { Here } from '../here.ts';
import type { LimitTarget } from '../limit-target.ts';
import type { LimitView } from '../limit-views.ts';
import { TextField } from './fields.tsx';
import { FormOf } from './forms.tsx';
import { WindowBars } from './window-bars.tsx';

export const LIMIT_SOURCES: Readonly<Record<LimitLayer, string>> = {
  recommended: 'Recommended for the provider',
  application: 'Adjusted for the provider, in this application',
  account: 'Adjusted for this account',
};

export const LIMIT_DONE = 'The limit is changed. Every process obeys it within a second.';

interface LimitPanelProps {
  readonly here: Here;
  readonly target: LimitTarget;
  readonly limit: LimitView;
  readonly canManage: boolean;
  readonly faulty: FaultyForm | undefined;
}

/** A limit, and the form that changes it. */
export function LimitPanel({ here, target, limit, canManage, faulty }: LimitPanelProps): JSX.Element {
  const { value, label, text, source, isOwn, windows, seen } = limit;
  const inputs = faulty?.form === value ? faulty.inputs : undefined;
  return (
    <section class="panel" aria-label={label}>
      <h3>{label}</h3>
      <p class="soft">{LIMIT_SOURCES[source]}</p>
      {windows === undefined ? <WindowTexts text={text} /> : <WindowBars windows={windows} />}
      {canManage ? (
        <details class="asked" open={inputs !== undefined}>
          <summary>
            Adjust <span class="hidden">{label}</span>
          </summary>
          <div class="inside">
            <FormOf {...here.form(`${target.path}/preview`)}>
              <input type="hidden" name="route" value={value} />
              <input type="hidden" name="seen" value={seen} />
              <TextField
                name="windows"
                prefix={`${value}-`}
                label="Windows"
                hint="One or two, such as 120/1m, 20000/1d. Units: ms, s, m, h, d."
                value={inputs?.raw('windows') || text}
                faults={inputs?.faults ?? []}
              />
              <div class="deeds">
                <button type="submit">Preview</button>
                {isOwn ? (
                  <button type="submit" name="reset" value="yes" class="plain">
                    Preview the reset
                  </button>
                ) : null}
              </div>
            </FormOf>
          </div>
        </details>
      ) : null}
    </section>
  );
}

/** The windows of a limit, without their counts. */
export const WindowTexts = ({ text }: { readonly text: string }): JSX.Element =>
  text === '' ? <p>Requests are not limited by it.</p> : <p class="windows">{text.replaceAll('/', ' per ')}</p>;
