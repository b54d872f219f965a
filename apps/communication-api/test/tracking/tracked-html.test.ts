import { performance } from 'node:perf_hooks';
import fc from 'fast-check';
import { startCpuTimer } from 'headgate-testbed/cpu-timer';
import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import { expect, test } from 'vitest';
import { MAX_FOREIGN, MAX_HTML, MAX_LINKS, TrackedHtml } from '../../src/tracking/tracked-html.ts';
import { MAX_TARGET, targetOf, unsubscribeTargets } from '../../src/tracking/tracked-link.ts';

const PIXEL = '<img src="P" width="1" height="1" alt="" style="display:block">';

/** The body with `T1`, `T2`, … for its links, and `P` for the source of its pixel. */
async function track(html: string, wish: { opens?: boolean; links?: boolean; except?: ReadonlySet<string> } = {}) {
  const { opens = false, links = true, except = new Set<string>() } = wish;
  const tracked = await TrackedHtml.read(html, { opens, links, except });
  const body = await tracked.render(
    ({ no }) => `T${no}`,
    () => 'P',
  );
  return { body, links: tracked.links };
}

test.each<[what: string, html: string, expected: string, links: readonly string[]]>([
  ['an https link', '<a href="https://a.example/x">', '<a href="T1">', ['https://a.example/x']],
  [
    'an http link',
    "<p><a class=c href='http://a.example'>x</a>",
    '<p><a class=c href="T1">x</a>',
    ['http://a.example'],
  ],
  ['a link without quotes', '<a href=http://a.example/>', '<a href="T1">', ['http://a.example/']],
  ['a link in capitals', '<A HREF="HTTPS://A.example/X">', '<A href="T1">', ['HTTPS://A.example/X']],
  [
    'entities',
    '<a href="http://a.example/?b=1&amp;c=2&copy">',
    '<a href="T1">',
    ['http://a.example/?b=1&c=2©'].map(url),
  ],
  ['space around', '<a href="\n http://a.example/ ">', '<a href="T1">', ['http://a.example/']],
  [
    'other scripts',
    '<a href="https://bücher.example/ä b">',
    '<a href="T1">',
    ['https://xn--bcher-kva.example/%C3%A4%20b'],
  ],
  ['no slashes', '<a href="https:a.example">', '<a href="T1">', ['https://a.example/']],
  ['a mailto link', '<a href="mailto:ann@example.com">', '<a href="mailto:ann@example.com">', []],
  ['a fragment', '<a href="#top">', '<a href="#top">', []],
  ['a relative link', '<a href="/x">', '<a href="/x">', []],
  ['a link without a scheme', '<a href="//a.example/x">', '<a href="//a.example/x">', []],
  ['a script link', '<a href="javascript:alert(1)">', '<a href="javascript:alert(1)">', []],
  ['a faulty link', '<a href="http://">', '<a href="http://">', []],
  ['an anchor', '<a name="x">', '<a name="x">', []],
  ['another element', '<link href="http://a.example"><area href="http://a.example">', '', []],
  ['a disabled link', '<a href="http://a.example" data-disable-tracking>', '<a href="http://a.example" >', []],
  [
    'a disabled link with a value',
    '<a DATA-disable-tracking="1" href="http://a.example">',
    '<a  href="http://a.example">',
    [],
  ],
  [
    'a disabled link with half a value',
    '<a href="http://a.example" data-disable-tracking = >',
    '<a href="http://a.example" >',
    [],
  ],
  [
    'a disabled link without space',
    '<a href="http://a.example"data-disable-tracking/>',
    '<a href="http://a.example"/>',
    [],
  ],
  ['the attribute on a mailto link', '<a data-disable-tracking href="mailto:a@b.c">', '<a  href="mailto:a@b.c">', []],
  ['the attribute on another element', '<p data-disable-tracking>', '', []],
  ['an attribute with a similar name', '<a data-href="http://a.example" xlink:href="http://a.example">', '', []],
  [
    'a second href',
    '<a href="http://a.example" href="http://b.example">',
    '<a href="T1" href="http://b.example">',
    ['http://a.example'],
  ],
  ['a comment', '<!--[if mso]><a href="http://a.example"><![endif]-->', '', []],
  ['a script', '<script>"<a href=\'http://a.example\'>"</script>', '', []],
  ['a style', '<style><a href="http://a.example"></style>', '', []],
  ['a text area', '<textarea><a href="http://a.example"></textarea>', '', []],
  ['an attribute that contains a link', '<p title=\'<a href="http://a.example">\'>', '', []],
  ['a link that does not end', 'x <a href="http://a.example" ', '', []],
  ['a link after a comment that does not end', '<!-- <a href="http://a.example">', '', []],
  [
    'a link in an SVG image',
    '<svg><a href="http://a.example" xlink:href="http://b.example">',
    '<svg><a href="T1" xlink:href="http://b.example">',
    ['http://a.example'],
  ],
])('links: %s', async (_, html, expected, links) => {
  expect(await track(html)).toEqual({ body: expected === '' ? html : expected, links });
});

test.each<[what: string, html: string, expected: string]>([
  ['before the end of the body', '<html><body>Hi</BODY ></html>', `<html><body>Hi${PIXEL}</BODY ></html>`],
  ['before the first of two ends', 'a</body>b</body>', `a${PIXEL}</body>b</body>`],
  ['at the end', '<p>Hi', `<p>Hi${PIXEL}`],
  ['not before an end in a comment', '<p>Hi<!-- </body> -->', `<p>Hi<!-- </body> -->${PIXEL}`],
  ['nowhere in a text area that does not end', '<textarea>Hi', '<textarea>Hi'],
  ['nowhere in a comment that does not end', 'Hi <!-- ', 'Hi <!-- '],
  ['nowhere in a tag that does not end', 'Hi <a href="', 'Hi <a href="'],
])('the pixel comes %s', async (_, html, expected) => {
  expect((await track(html, { opens: true })).body).toBe(expected);
});

test('links stay as they are if only opens are tracked, and keep their attribute', async () => {
  const html = '<a href="http://a.example"></a><a href="http://b.example" data-disable-tracking></a>';
  expect(await track(html, { opens: true, links: false })).toEqual({ body: html + PIXEL, links: [] });
});

test('the web links of List-Unsubscribe stay as they are, however they are written', async () => {
  const except = unsubscribeTargets([
    { name: 'List-unsubscribe', value: '<mailto:u@a.example>, <https://a.example/u?a=1&b=2>, <http://a.example>, <x>' },
  ]);
  const html =
    '<a href="https://a.example/u?a=1&amp;b=2"></a><a href=" HTTPS://A.example/u?a=1&b=2"></a><a href="https://a.example/u">';
  const { body, links } = await track(html, { except });
  expect(body).toBe(html.replace('"https://a.example/u"', '"T1"'));
  expect(links).toEqual(['https://a.example/u']);
});

test('a link that would be too long with its token stays as it is', async () => {
  const longest = `http://a.example/${'x'.repeat(MAX_TARGET - 17)}`;
  expect(targetOf(longest)).toBe(longest);
  expect((await track(`<a href="${longest}x">`)).links).toEqual([]);
});

test.each([
  ['body: cannot be tracked, because it is longer', 'x'.repeat(MAX_HTML + 1)],
  ['body: cannot be tracked, because it has more than 10000 links', '<a href=http://a.b>'.repeat(MAX_LINKS + 1)],
  ['body: cannot be tracked, because it has more than 2000 svg', '<svg>'.repeat(MAX_FOREIGN + 1)],
])('an error says: %s', async (detail, html) => {
  await expect(track(html)).rejects.toMatchObject({ status: 422, message: expect.stringContaining(detail) });
});

test('as many links as are allowed are tracked', async () => {
  expect((await track('<a href=http://a.b>'.repeat(MAX_LINKS))).links).toHaveLength(MAX_LINKS);
});

/** Texts that are expensive for a parser that goes back, nests or counts. */
const HOSTILE: Readonly<Record<string, (size: number) => string>> = {
  'opened links': (size) => '<a>'.repeat(size / 3),
  'opened SVG images': (size) => `${'<svg>'.repeat(MAX_FOREIGN)}${'<title>'.repeat(size / 7)}`,
  'less-than signs': (size) => '<'.repeat(size),
  attributes: (size) => `<a ${Array.from({ length: size / 8 }, (_, i) => `b${i.toString(36)}`).join(' ')}>`,
  'repeated attributes': (size) => `<a ${'href=http://a.b '.repeat(size / 16)}>`,
  'tags that do not end': (size) => '<a href="'.repeat(size / 9),
  comments: (size) => '<!--'.repeat(size / 4),
  'script ends': (size) => `<script>${'</scrip'.repeat(size / 7)}`,
  'character references': (size) => '&notit;'.repeat(size / 7),
  'equals signs': (size) => `<a data-disable-tracking${' '.repeat(size / 2)}${'='.repeat(size / 2)}>`,
};

test.each(Object.entries(HOSTILE))(
  '1 MB of %s takes no quadratic time, and never stops the process for long',
  async (_, make) => {
    const html = make(1_048_576);
    let longest = 0;
    let before = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      longest = Math.max(longest, now - before);
      before = now;
    }, 1);
    const cpuMs = startCpuTimer();
    await track(html, { opens: true });
    clearInterval(timer);
    // It takes about 0.2 s; in quadratic time, each of these would take more than 10 s.
    expect(cpuMs()).toBeLessThan(5_000);
    expect(longest).toBeLessThan(2_500);
  },
);

const words = (text: string) => fc.constantFrom(...text.split(' '));
const href = words(
  'http://a.example/1 https://b.example/?x=1&amp;y=2 HTTP://C.example https://ä.example/ö https:/d.example ' +
    'mailto:a@b.example #top /relative javascript:void(0) http:// ftp://a.example',
);
const target = fc.tuple(href, words(`" '`)).map(([value, quote]) => ` href=${quote}${value}${quote}`);
const attribute = fc.constantFrom(
  ...[' class=c', ' disabled', ' title="a > b"', ' data-disable-tracking', ' data-disable-tracking="x"', '\n', '/'],
);
const link = fc
  .uniqueArray(fc.oneof(target, target, attribute), {
    minLength: 1,
    maxLength: 4,
    selector: (text) => text.trim().split('=')[0],
  })
  .map((attributes) => `<a${attributes.join('')}>`);
const element = words(
  '</a> <p> </p> <b> </b> <table> <tr> <td> </table> <div> </div> <br/> <ul> <li> <pre> </pre> <html> <head> <body> ' +
    '</body> </html> <!doctype> <button> </title> </style> </script> -->',
);
/** Whole: the parser is wrong about text after a faulty SVG image, and inside `<select>`, which emails do not have. */
const image = link.map((tag) => `<svg viewBox="0 0 1 1"><title>t</title>${tag}<path d=""/></a></svg>`);
/** What follows may not be HTML. */
const opening = words('<textarea> <title> <style> <script> <!-- <![CDATA[ <? < <a <template> <noscript>');
const text = fc.constantFrom(
  '&amp;',
  '&nbsp',
  '\r\n',
  '\n',
  '\r',
  '\u0000',
  '😀',
  '\ud800',
  'text',
  ' ',
  '>',
  '"',
  "'",
);
const piece = fc.oneof(
  { weight: 10, arbitrary: link },
  { weight: 10, arbitrary: element },
  { weight: 5, arbitrary: text },
  { weight: 1, arbitrary: image },
  { weight: 1, arbitrary: opening },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
);
const soup = fc.array(piece, { size: 'max', maxLength: 30 }).map((pieces) => pieces.join(''));

type Parent = DefaultTreeAdapterTypes.ParentNode;

/** The tree as values; `change` may change the attributes of a link. */
function treeOf(node: Parent, change: (attributes: Map<string, string>) => void): unknown[] {
  return node.childNodes.map((child) => {
    if (!('tagName' in child))
      return 'value' in child ? child.value : 'data' in child ? `<!--${child.data}` : child.nodeName;
    const attributes = new Map(child.attrs.map(({ name, value }) => [name, value]));
    if (child.tagName === 'a') change(attributes);
    const children =
      'content' in child
        ? [...treeOf(child.content as Parent, change), ...treeOf(child, change)]
        : treeOf(child, change);
    return [child.tagName, [...attributes], children];
  });
}

test('whatever the body is, only the targets of its links change in its tree, and the attribute disappears', async () => {
  let tracked = 0;
  await fc.assert(
    fc.asyncProperty(soup, async (html) => {
      const { body, links } = await track(html);
      const expected = treeOf(parse(html), (attributes) => {
        const target = targetOf(attributes.get('href'));
        if (!attributes.delete('data-disable-tracking') && target !== undefined) attributes.set('href', target);
      });
      const actual = treeOf(parse(body), (attributes) => {
        const [, no] = /^T(\d+)$/.exec(attributes.get('href') ?? '') ?? [];
        if (no !== undefined) attributes.set('href', links[Number(no) - 1] ?? '');
      });
      expect(actual).toEqual(expected);
      tracked += links.length;
    }),
    { numRuns: 2_000 },
  );
  // Otherwise the bodies have shown nothing.
  expect(tracked).toBeGreaterThan(1_000);
});

test('whatever the body is, everything but its tracked links and the pixel stays the same, byte for byte', async () => {
  const plainLink = fc.constantFrom('<a href="mailto:a@b.example">', "<a title='http://x.example'>", '<a\thref=#x >');
  await fc.assert(
    fc.asyncProperty(soup, plainLink, soup, async (before, own, after) => {
      const html = `${before.replaceAll('data-disable-tracking', 'data-other')}${own}${after.replaceAll('data-disable-tracking', 'data-other')}`;
      const { body, links } = await track(html, { opens: true });
      // Each change is undone by what stood at its place.
      const kept = body.replace(PIXEL, '').split(/href="T\d+"/);
      expect(kept).toHaveLength(links.length + 1);
      let at = 0;
      for (const [index, text] of kept.entries()) {
        expect(html.startsWith(text, at)).toBe(true);
        at += text.length;
        if (index < links.length)
          at += /^href\s*=\s*(?:"[^"]*"|'[^']*')/i.exec(html.slice(at))?.[0].length ?? Number.NaN;
      }
      expect(at).toBe(html.length);
    }),
    { numRuns: 2_000 },
  );
});

test.each([0, 1, 2])('a character or a line break may be at the end of a slice of the body (%i)', async (shift) => {
  const filler = 'x'.repeat(shift) + '😀\r\n'.repeat(30_000);
  const { body } = await track(`${filler}<a href="http://a.example/">`, { opens: true });
  expect(body).toBe(`${filler}<a href="T1">${PIXEL}`);
});

test('a long body is changed at the same places as a short one', async () => {
  const filler = `<p>😀 text\r\n${'x'.repeat(1_000)}</p>`.repeat(150);
  const own = '<a href="http://a.example/1" data-x>y</a><a data-disable-tracking href="http://a.example/2">';
  const { body } = await track(`${filler}${own}${filler}${own}`, { opens: true });
  const changed = (no: number): string => `<a href="T${no}" data-x>y</a><a  href="http://a.example/2">`;
  expect(body).toBe(`${filler}${changed(1)}${filler}${changed(2)}${PIXEL}`);
});

function url(text: string): string {
  return new URL(text).href;
}
