import type { JSX } from 'preact';
import type { EnteredFault } from '../../links/wizard-sessions.ts';
import type { Provider } from '../../providers/provider.ts';
import { type Frame, initialOf, Layout } from './layout.tsx';
import { FaultSummary, Lead, PostForm } from './parts.tsx';

/** From this number of providers on, the list can be searched. */
const SEARCH_FROM = 7;

interface ChoosePageProps {
  readonly frame: Frame;
  readonly application: string;
  readonly action: string;
  readonly csrf: string;
  readonly providers: readonly Pick<Provider, 'name' | 'title'>[];
  /** The user's search text. */
  readonly search: string;
  readonly faults: readonly EnteredFault[];
  readonly aside: JSX.Element;
}

/** The list of the providers that the link offers. Each is a button. */
export function ChoosePage(props: ChoosePageProps): JSX.Element {
  const { frame, application, action, csrf, providers, search, faults, aside } = props;
  const { text } = frame;
  const searchable = providers.length >= SEARCH_FROM;
  const wanted = searchable ? search.trim().toLowerCase() : '';
  const found = providers.filter(({ title }) => title.toLowerCase().includes(wanted));
  return (
    <Layout frame={frame} title={text.choose.title} faulty={faults.length > 0} aside={aside}>
      <FaultSummary frame={frame} faults={faults} />
      <Lead title={text.choose.title}>
        <p>{text.choose.intro(application)}</p>
      </Lead>
      {searchable ? (
        <form method="get" action={action} class="search">
          <div class="field">
            <label for="search">{text.choose.search}</label>
            <input type="search" id="search" name="q" value={search} autoComplete="off" />
          </div>
          <button type="submit">{text.choose.searchSubmit}</button>
        </form>
      ) : null}
      <PostForm action={action} csrf={csrf}>
        <ul class="providers" aria-label={text.choose.list}>
          {found.map(({ name, title }) => (
            <li key={name} data-title={title.toLowerCase()}>
              <button type="submit" name="provider" value={name} data-sending={text.sending}>
                <span class="tile" aria-hidden="true">
                  {initialOf(title)}
                </span>
                {title}
              </button>
            </li>
          ))}
        </ul>
        <p id="none" class="hint" hidden={found.length > 0}>
          {text.choose.none}
        </p>
      </PostForm>
    </Layout>
  );
}
