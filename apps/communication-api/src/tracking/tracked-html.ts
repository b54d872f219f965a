import { finished } from 'node:stream/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { type EndTag, SAXParser, type StartTag } from 'parse5-sax-parser';
import { ServiceError } from '../domain/service-error.ts';
import { type TrackedLink, targetOf } from './tracked-link.ts';

/** Longest HTML body that can be tracked, in characters. To parse it takes about a second. */
export const MAX_HTML = 4_194_304;
/** Each link makes the body longer by the length of its token. */
export const MAX_LINKS = 10_000;
/** The parser takes quadratic time if these elements are nested. */
export const MAX_FOREIGN = 2_000;
/** Other requests are served after each slice. */
const SLICE = 32_768;
/** As many links get their new address at a time: each address is encrypted. */
const LINKS_AT_ONCE = 200;
/** It shows whether an element at the end of the body would be an element, and not text inside another element. */
const PROBE = '<img>';
const DISABLE = 'data-disable-tracking';

/** Replaces the characters from `start` to `end`; `link` is a link of {@link TrackedHtml}, by its number from 1. */
interface Change {
  readonly start: number;
  readonly end: number;
  readonly link: number | 'none' | 'pixel';
}

/** The parser's location of a start tag; its types leave the attributes out. */
type TagLocation =
  | (NonNullable<StartTag['sourceCodeLocation']> & {
      readonly attrs?: Readonly<Record<string, { readonly startOffset: number; readonly endOffset: number }>>;
    })
  | null
  | undefined;

export interface TrackingWish {
  readonly opens: boolean;
  readonly links: boolean;
  /** Links that are never tracked, as `URL` writes them. */
  readonly except: ReadonlySet<string>;
}

/**
 * An HTML body with the places of its links and its pixel. Everything else in the body stays the same, byte for byte.
 * A tokenizer finds the places, because building a tree would take quadratic time for hostile bodies. It is wrong only
 * about text after faulty SVG or MathML, and inside `<select>`.
 */
export class TrackedHtml {
  private constructor(
    private readonly html: string,
    private readonly changes: readonly Change[],
    /** The targets of the tracked links, in the order of the body. */
    readonly links: readonly string[],
  ) {}

  /**
   * Finds the links and the place of the pixel.
   * @throws ServiceError 422 if the body is too long, or contains too many links or images
   */
  static async read(html: string, { opens, links, except }: TrackingWish): Promise<TrackedHtml> {
    if (html.length > MAX_HTML) throw tooMuch(`is longer than ${MAX_HTML} characters`);
    const parser = new SAXParser({ sourceCodeLocationInfo: true });
    const changes: Change[] = [];
    const targets: string[] = [];
    let foreign = 0;
    // An error that a listener throws would not reach the caller.
    let fault: string | undefined;
    let pixelAt: number | undefined;
    parser.on('startTag', (tag: StartTag) => {
      const location: TagLocation = tag.sourceCodeLocation;
      if (location == null) return;
      if ((tag.tagName === 'svg' || tag.tagName === 'math') && ++foreign > MAX_FOREIGN)
        fault = `has more than ${MAX_FOREIGN} svg and math elements`;
      if (location.startOffset >= html.length) pixelAt ??= html.length;
      // The body ended inside this tag, so the tag is not part of the tree.
      if (!links || tag.tagName !== 'a' || location.endOffset > html.length) return;
      const { href, [DISABLE]: disabled } = location.attrs ?? {};
      if (disabled !== undefined) {
        const start = disabled.startOffset;
        return void changes.push({ start, end: endOfAttribute(html, start, disabled.endOffset), link: 'none' });
      }
      const target = targetOf(tag.attrs.find(({ name, prefix = '' }) => name === 'href' && prefix === '')?.value);
      if (href === undefined || target === undefined || except.has(new URL(target).href)) return;
      if (targets.push(target) > MAX_LINKS) fault = `has more than ${MAX_LINKS} links`;
      changes.push({ start: href.startOffset, end: href.endOffset, link: targets.length });
    });
    parser.on('endTag', ({ tagName, sourceCodeLocation: location }: EndTag) => {
      if (tagName === 'body' && location != null && location.endOffset <= html.length) pixelAt ??= location.startOffset;
    });
    for (let at = 0; at < html.length; at += SLICE) {
      parser.write(html.slice(at, at + SLICE));
      await turn();
      if (fault !== undefined) throw tooMuch(fault);
    }
    parser.end(PROBE);
    await finished(parser, { readable: false });
    if (opens && pixelAt !== undefined) changes.push({ start: pixelAt, end: pixelAt, link: 'pixel' });
    return new TrackedHtml(
      html,
      changes.sort((a, b) => a.start - b.start),
      targets,
    );
  }

  /**
   * The body with its new links and the pixel.
   * @param linkUrl the URL of the link with this number, from 1, and this target
   */
  async render(linkUrl: (link: TrackedLink) => string, pixelUrl: () => string): Promise<string> {
    const parts: string[] = [];
    let at = 0;
    let links = 0;
    for (const { start, end, link } of this.changes) {
      parts.push(this.html.slice(at, start));
      if (link === 'pixel') parts.push(`<img src="${pixelUrl()}" width="1" height="1" alt="" style="display:block">`);
      else if (link !== 'none') parts.push(`href="${linkUrl({ no: link, target: this.links[link - 1] ?? '' })}"`);
      at = end;
      if (++links % LINKS_AT_ONCE === 0) await turn();
    }
    return parts.concat(this.html.slice(at)).join('');
  }
}

/** The parser leaves the equals sign of an attribute without a value to the tag. */
function endOfAttribute(html: string, start: number, end: number): number {
  if (html.slice(start, end).includes('=')) return end;
  const sign = /[\t\n\f\r ]*=[\t\n\f\r ]*/y;
  sign.lastIndex = end;
  return end + (sign.exec(html)?.[0].length ?? 0);
}

const tooMuch = (fault: string): ServiceError =>
  new ServiceError(422, 'errors/unprocessable_entity', `body: cannot be tracked, because it ${fault}`);
