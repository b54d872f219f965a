import type { JSX } from 'preact';
import { COUNTRIES } from '../../domain/countries.ts';
import { PROXY_PROTOCOLS } from '../../domain/proxy.ts';
import type { EnteredFault } from '../../links/wizard-sessions.ts';
import type { Field, LinkStep } from '../../providers/link-flow.ts';
import { COUNTRY_FIELD, fieldsOf, PROXY_FIELDS } from '../entered-values.ts';
import { FieldInput } from './field.tsx';
import { type Frame, Layout } from './layout.tsx';
import { FaultSummary, Lead, PostForm, SubmitButton } from './parts.tsx';

interface StepPageProps {
  readonly frame: Frame;
  readonly action: string;
  readonly csrf: string;
  readonly step: LinkStep;
  readonly values: Readonly<Record<string, string>> | undefined;
  readonly faults: readonly EnteredFault[];
  readonly pausedSeconds: number | undefined;
  /** Whether the user may enter a proxy. */
  readonly withProxy: boolean;
  /** Whether the user already entered the password of a proxy. */
  readonly hasProxyPassword: boolean;
  /** Whether the user may choose the country of the automatic proxy. */
  readonly withCountry: boolean;
  readonly aside: JSX.Element;
}

/** One page of a provider's flow. */
export function StepPage(props: StepPageProps): JSX.Element {
  const { frame, action, csrf, step, values, faults, pausedSeconds, withProxy, hasProxyPassword, withCountry, aside } =
    props;
  const { text, language } = frame;
  const faultOf = (name: string): EnteredFault | undefined => faults.find(({ field }) => field === name);
  const labelOf = (name: string): string | undefined =>
    [...fieldsOf(step), ...proxyFieldsOf(frame, false)].find((field) => field.name === name)?.label[language];
  return (
    <Layout frame={frame} title={step.title[language]} faulty={faults.length > 0} aside={aside}>
      <FaultSummary frame={frame} faults={faults} pausedSeconds={pausedSeconds} labelOf={labelOf} />
      <Lead title={step.title[language]}>{step.intro === undefined ? null : <p>{step.intro[language]}</p>}</Lead>
      {step.image === undefined ? null : (
        <img class="picture" src={step.image.url} alt={step.image.description[language]} />
      )}
      <PostForm action={action} csrf={csrf} repeatSeconds={step.kind === 'wait' ? step.everySeconds : undefined}>
        {step.kind === 'code' ? <CodeInput frame={frame} fault={faultOf('code')} /> : null}
        {step.kind === 'wait' ? (
          <p class="hint" role="status">
            {text.wait}
          </p>
        ) : null}
        {step.kind === 'form'
          ? rowsOf(step.fields).map((row) => {
              const inputs = row.map((field) => (
                <FieldInput key={field.name} frame={frame} field={field} values={values} fault={faultOf(field.name)} />
              ));
              return inputs.length === 1 ? inputs : <div class="pair">{inputs}</div>;
            })
          : null}
        {withCountry ? <CountryList frame={frame} chosen={values?.[COUNTRY_FIELD]} /> : null}
        {withProxy ? (
          <ProxyForm frame={frame} values={values} faultOf={faultOf} hasPassword={hasProxyPassword} />
        ) : null}
        {step.kind === 'away' ? <p class="hint">{text.away(new URL(step.url).host)}</p> : null}
        <SubmitButton frame={frame} label={labelOfSubmit(step, frame)} />
      </PostForm>
    </Layout>
  );
}

/** A field that is shown beside the previous field is in the same row. */
function rowsOf(fields: readonly Field[]): readonly (readonly Field[])[] {
  const rows: Field[][] = [];
  for (const field of fields) {
    const row = rows.at(-1);
    if (field.kind === 'number' && field.beside === true && row?.length === 1) row.push(field);
    else rows.push([field]);
  }
  return rows;
}

function labelOfSubmit(step: LinkStep, { text, language }: Frame): string {
  if (step.kind === 'away') return step.button[language];
  return step.kind === 'wait' ? text.waitSubmit : text.submit;
}

function CodeInput({ frame, fault }: { readonly frame: Frame; readonly fault: EnteredFault | undefined }): JSX.Element {
  const [field] = fieldsOf({ kind: 'code', name: 'code', title: { en: '', de: '' } });
  return (
    <div class="code">
      {field === undefined ? null : <FieldInput frame={frame} field={field} values={{}} fault={fault} />}
    </div>
  );
}

function CountryList({ frame, chosen }: { readonly frame: Frame; readonly chosen: string | undefined }): JSX.Element {
  const { text, language } = frame;
  const names = new Intl.DisplayNames(language, { type: 'region' });
  const countries = COUNTRIES.map((code) => ({ code, name: names.of(code) ?? code })).sort((a, b) =>
    a.name.localeCompare(b.name, language),
  );
  return (
    <div class="field">
      <label for="country">{text.country.label}</label>
      <select id="country" name={COUNTRY_FIELD} aria-describedby="country-hint">
        <option value="" selected={chosen === undefined || chosen === ''}>
          {text.country.automatic}
        </option>
        {countries.map(({ code, name }) => (
          <option key={code} value={code} selected={chosen === code}>
            {name}
          </option>
        ))}
      </select>
      <p class="hint" id="country-hint">
        {text.country.hint}
      </p>
    </div>
  );
}

const proxyFieldsOf = ({ text: { proxy } }: Frame, hasPassword: boolean): readonly Field[] =>
  (['host', 'port', 'username', 'password'] as const).map((key) => ({
    kind: key === 'password' ? 'password' : 'text',
    name: PROXY_FIELDS[key],
    // The frame already chose the language.
    label: { en: proxy[key], de: proxy[key] },
    ...(key === 'password' && hasPassword ? { hint: { en: proxy.passwordKept, de: proxy.passwordKept } } : {}),
  }));

interface ProxyFormProps {
  readonly frame: Frame;
  readonly values: Readonly<Record<string, string>> | undefined;
  readonly faultOf: (name: string) => EnteredFault | undefined;
  readonly hasPassword: boolean;
}

function ProxyForm({ frame, values, faultOf, hasPassword }: ProxyFormProps): JSX.Element {
  const { text } = frame;
  const names = Object.values(PROXY_FIELDS);
  const open = names.some((name) => faultOf(name) !== undefined) || (values?.[PROXY_FIELDS.host] ?? '') !== '';
  const [host, port, username, password] = proxyFieldsOf(frame, hasPassword).map((field) => (
    <FieldInput
      key={field.name}
      frame={frame}
      field={field}
      values={values ?? {}}
      fault={faultOf(field.name)}
      marksOptional={false}
    />
  ));
  return (
    <details open={open}>
      <summary>{text.proxy.title}</summary>
      <div class="inside">
        <p class="hint">{text.proxy.intro}</p>
        <div class="field">
          <label for="proxy-protocol">{text.proxy.protocol}</label>
          <select id="proxy-protocol" name={PROXY_FIELDS.protocol}>
            {PROXY_PROTOCOLS.map((protocol) => (
              <option key={protocol} value={protocol} selected={values?.[PROXY_FIELDS.protocol] === protocol}>
                {protocol}
              </option>
            ))}
          </select>
        </div>
        <div class="pair">
          {host}
          {port}
        </div>
        {username}
        {password}
      </div>
    </details>
  );
}
