/** Style of the page. The contrast of text to its ground is 4.5 or more, in both schemes. */
export const STYLE = `
:root{--paper:#fff;--ink:#1f2328;--faint:#59636e;--line:#d1d9e0;--ground:#f6f8fa;--all:#c8d1da;--current:#9a6700;--candidate:#cf222e;--some:#0969da;--much:#9a6700;--full:#cf222e}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--faint:#9198a1;--line:#30363d;--ground:#151b23;--all:#3d444d;--current:#d29922;--candidate:#f85149;--some:#4493f8;--much:#d29922;--full:#f85149}}
@media print{:root{--paper:#fff;--ink:#000;--faint:#444;--line:#bbb;--ground:#fff;--all:#ccc;--current:#9a6700;--candidate:#cf222e;--some:#0969da;--much:#9a6700;--full:#cf222e}.table{overflow:visible}tr,figure{break-inside:avoid}h2{break-after:avoid}*{print-color-adjust:exact}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1000px;margin:0 auto;padding:24px}
h1{font-size:24px;overflow-wrap:anywhere}h2{font-size:18px;margin:32px 0 8px}
.time{white-space:nowrap}
.headline{font-size:18px}.note{border-left:4px solid var(--line);padding-left:12px;color:var(--faint)}
.table{overflow-x:auto}.table:focus-visible{outline:2px solid var(--some)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:4px 12px 4px 0;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap;font-weight:400}
th:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:12ch}
thead th{color:var(--faint);font-size:13px;vertical-align:bottom}
figure{margin:0}figure svg{width:100%;height:auto}figcaption{color:var(--faint)}
svg text{fill:var(--faint);font:12px system-ui,sans-serif}
.grid{stroke:var(--line)}path.all{fill:var(--all)}path.current{fill:var(--current)}path.candidate{fill:var(--candidate)}
.key{display:inline-block;width:12px;height:12px;margin:0 6px 0 12px;border:1px solid var(--faint);vertical-align:-1px}.key:first-child{margin-left:0}
span.all{background:var(--all)}span.current{background:var(--current)}span.candidate{background:var(--candidate)}
.share{width:100px;height:10px;vertical-align:middle}.rest{fill:var(--ground);stroke:var(--line)}.some{fill:var(--some)}.much{fill:var(--much)}.full{fill:var(--full)}.mark{stroke:var(--ink);stroke-dasharray:2 2}
@media screen and (max-width:640px){main{padding:16px}th,td{white-space:normal;padding-right:8px}figure svg{min-width:640px}}
`;

/** Hash of the style, for the Content Security Policy. A test compares the two. */
export const STYLE_HASH = 'sha256-HrsfWi05o319Bu2O4KkSfv/bF4wcLDbZefA8TROgx6c=';
