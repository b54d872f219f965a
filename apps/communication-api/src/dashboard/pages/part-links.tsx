import type { JSX } from 'preact';

interface PartLinksProps {
  readonly parts: readonly { readonly name: string; readonly label: string; readonly href: string }[];
  /** The name of the part that the page is in. */
  readonly current: string | undefined;
}

/** A list of links to the parts of something, for a `nav`. */
export const PartLinks = ({ parts, current }: PartLinksProps): JSX.Element => (
  <ul>
    {parts.map(({ name, label, href }) => (
      <li key={name}>
        <a href={href} aria-current={name === current ? 'page' : undefined}>
          {label}
        </a>
      </li>
    ))}
  </ul>
);
