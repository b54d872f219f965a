// The links of a packed page. A relative link leads nowhere on the page of a package: the archive lacks its target.
import { existsSync } from 'node:fs';
import { posix } from 'node:path';

/** Fenced code, which stays as it is; or a link or an image, whose text may itself contain brackets. */
const CODE_OR_LINK = /^```[\s\S]*?^```|(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/gm;

/**
 * Makes links absolute. Without a repository there is no address, so a link becomes its text, and an image is removed.
 * @param {string} text
 * @param {string} page path of the page in the repository
 * @param {{ address: string, tag: string } | null} repository web address, and the tag of the version
 */
export function withAbsoluteLinks(text, page, repository) {
  return text.replace(CODE_OR_LINK, (whole, image, words, target) => {
    if (target === undefined || /^(\w+:|#)/.test(target)) return whole;
    const path = posix.join(posix.dirname(page), target);
    if (path.startsWith('../') || !existsSync(new URL(`../${path}`, import.meta.url)))
      throw new Error(`${page}: the link ${target} leads to no file of the repository`);
    if (repository === null) return image ? '' : words;
    // Only `raw` answers with the image itself.
    const address = `${repository.address}/${image ? 'raw' : 'blob'}/${repository.tag}/${path}`;
    return `${image}[${words}](${address})`;
  });
}

/**
 * The web address of a manifest's `repository`: `github:owner/name`, a URL of git, or an object with such a `url`.
 * @param {string | { url: string } | undefined} repository
 * @returns {string | null}
 */
export function addressOfRepository(repository) {
  if (repository === undefined) return null;
  const text = typeof repository === 'string' ? repository : repository.url;
  const address = text
    .replace(/^(?:github:)?([\w.-]+\/[\w.-]+)$/, 'https://github.com/$1')
    .replace(/^git\+/, '')
    .replace(/\.git$/, '');
  if (!/^https:\/\/[^\s/]+\/\S+[^/]$/.test(address))
    throw new Error(
      `package.json: repository: must be github:OWNER/NAME or the https address of a repository, not ${text}`,
    );
  return address;
}
