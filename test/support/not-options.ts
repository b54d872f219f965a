/** Values that are mistaken for an object of options, each with its name. In silence they would do nothing. */
export const NOT_OPTIONS: readonly (readonly [name: string, value: unknown])[] = [
  ['null', null],
  ['a number', 5],
  ['true', true],
  ['a string', 'limits'],
  ['an array', [{ limits: ['1/1m'] }]],
  ['a function', () => ({ limits: ['1/1m'] })],
  ['a map', new Map([['limits', ['1/1m']]])],
  [
    'an instance of a class',
    new (class Options {
      limits = ['1/1m'];
    })(),
  ],
  ['a promise', Promise.resolve({ limits: ['1/1m'] })],
];
