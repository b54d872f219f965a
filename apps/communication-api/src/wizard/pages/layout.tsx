import type { ComponentChildren, JSX } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { WIZARD_SCRIPT, WIZARD_STYLESHEET } from '../../assets.ts';
import { LANGUAGES, type Language } from '../../domain/language.ts';
import { TEXTS, type Text } from '../text/text.ts';

/** The parts around the content of every page. */
export interface Frame {
  readonly language: Language;
  readonly text: Text;
  /** Name of the application for which an account is linked. Absent: the link is not known. */
  readonly application: string | undefined;
  /** Whether the yellow bar is shown. */
  readonly development: boolean;
}

interface LayoutProps {
  readonly frame: Frame;
  readonly title: string;
  /** Whether the page shows faults: the title says so, since a screen reader reads it first. */
  readonly faulty?: boolean | undefined;
  /** Seconds after which a browser without script loads the page again. */
  readonly refreshSeconds?: number | undefined;
  /** Forms below the card. */
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A whole page with one card. */
export function Layout({ frame, title, faulty, refreshSeconds, aside, children }: LayoutProps): JSX.Element {
  const { language, text, application, development } = frame;
  const fullTitle = application === undefined ? title : `${title} – ${application}`;
  return (
    <html lang={language} dir={text.direction}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>{faulty === true ? text.errorPrefix + fullTitle : fullTitle}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={WIZARD_STYLESHEET.path} />
        <script type="module" src={WIZARD_SCRIPT.path} />
        {refreshSeconds === undefined ? null : (
          <noscript>
            <meta http-equiv="refresh" content={String(refreshSeconds)} />
          </noscript>
        )}
      </head>
      <body>
        <a class="skip" href="#main">
          {text.skip}
        </a>
        <header>
          {development ? <p class="development">{text.development}</p> : null}
          {application === undefined ? null : (
            <div class="who">
              <span class="tile" aria-hidden="true">
                {initialOf(application)}
              </span>
              <p>{text.purpose(application)}</p>
            </div>
          )}
        </header>
        <main id="main">
          <div class="card">{children}</div>
          {aside === undefined ? null : <div class="aside">{aside}</div>}
          <p id="sending" class="hidden" role="status" />
        </main>
        <footer>
          <LanguageLinks language={language} text={text} />
        </footer>
      </body>
    </html>
  );
}

function LanguageLinks({ language, text }: { readonly language: Language; readonly text: Text }): JSX.Element {
  return (
    <nav aria-label={text.languages}>
      {LANGUAGES.map((each) =>
        each === language ? (
          <span key={each} lang={each} aria-current="true">
            {TEXTS[each].languageName}
          </span>
        ) : (
          <a key={each} lang={each} hreflang={each} href={`?lang=${each}`}>
            {TEXTS[each].languageName}
          </a>
        ),
      )}
    </nav>
  );
}

/** The first letter of a name, for a tile. */
export const initialOf = (name: string): string => ([...name.trim()][0] ?? '?').toUpperCase();

/** The HTML of a page. */
export const pageHtml = (page: JSX.Element): string => `<!DOCTYPE html>${renderToString(page)}`;
