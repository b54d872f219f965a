import { Wide } from './wide.tsx';

/** JSON as it is written in a file. */
export function Json({ label, text }: { label: string; text: string }) {
  return (
    <Wide label={`${label} as JSON`} isTall>
      <pre>{text}</pre>
    </Wide>
  );
}
