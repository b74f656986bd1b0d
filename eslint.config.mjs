import js from '@eslint/js';
import globals from 'globals';
import ts from 'typescript-eslint';

export default ts.config(
  { ignores: ['lib/**', 'node_modules/**', 'kernelforge_lab/**'] },
  js.configs.recommended,
  ...ts.configs.recommended,
  {
    files: ['js/**/*.ts'],
    languageOptions: { globals: globals.browser },
    rules: {
      curly: 'error',
      eqeqeq: 'error',
      'no-console': 'error',
      // Data never becomes markup: a kernel's source or a verdict's text is written by a proposer.
      'no-restricted-properties': [
        'error',
        ...['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'write'].map(property => ({ property }))
      ]
    }
  },
  { files: ['*.mjs', '*.js', 'js/style/*.js'], languageOptions: { globals: globals.node } }
);
