import root from '../../typedoc.config.js';

/** The API reference of the root as Markdown, for the site. The options are relative to this file. */
export default {
  ...root,
  entryPoints: root.entryPoints.map((file) => `../../${file}`),
  tsconfig: '../../tsconfig.json',
  plugin: ['typedoc-plugin-markdown', 'typedoc-vitepress-theme'],
  out: 'api',
  docsRoot: '.',
  // One page per subpath: members of a subpath are used together, and a page per member would make 400.
  outputFileStrategy: 'modules',
  readme: 'none',
  cleanOutputDir: true,
  hideBreadcrumbs: true,
  hidePageHeader: true,
  useCodeBlocks: true,
  entryFileName: 'index.md',
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  sidebar: { autoConfiguration: true, format: 'vitepress', pretty: false },
};
