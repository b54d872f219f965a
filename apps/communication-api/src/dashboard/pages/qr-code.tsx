import type { JSX } from 'preact';
import encodeQR from 'qr';

/** A QR code. It is dark on white in every kind of colours, since some cameras read no other. */
export function QrCode({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const rows = encodeQR(text, 'raw', { border: 4 });
  const dark = rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg class="qr" viewBox={`0 0 ${rows.length} ${rows.length}`} role="img" aria-label={label}>
      <rect width="100%" height="100%" fill="#fff" />
      <path d={dark.join('')} fill="#000" shape-rendering="crispEdges" />
    </svg>
  );
}
