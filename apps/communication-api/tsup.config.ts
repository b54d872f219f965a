import { defineConfig } from 'tsup';

export default defineConfig({
  entry: ['src/main.ts', 'src/build-template.ts'],
  format: ['esm'],
  target: 'node20',
  outDir: 'dist',
  sourcemap: true,
  // A thousand modules, each a file to find and read, took two fifths of a start. These stay packages: headgate is built
  // beside the service, PGlite and Swagger UI read files beside their code, and Fastify loads pino, too.
  noExternal: [/^(?!node:|(?:headgate|pino|@electric-sql\/pglite|@fastify\/swagger-ui)(?:\/|$))/],
  // Packages in CommonJS use these, for modules of Node and for files beside them.
  banner: {
    js: [
      "import { createRequire as createRequireOf } from 'node:module';",
      'const require = createRequireOf(import.meta.url);',
      'const { dirname: __dirname, filename: __filename } = import.meta;',
    ].join(' '),
  },
  esbuildOptions(options) {
    // Stack traces need the names of files and lines only, and Node reads the maps at the start.
    options.sourcesContent = false;
  },
  silent: true,
});
