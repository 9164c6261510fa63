import jupyter from '@jupyter/eslint-plugin';
import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import globals from 'globals';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: [
      '**/node_modules/',
      '.venv*/',
      'build/',
      'coverage/',
      'dist/',
      'lib/',
      'site/',
      'src/model/rest.ts',
      'jupyter_gpucluster/',
      'ui-tests/'
    ]
  },
  js.configs.recommended,
  ...jupyter.configs.recommended,
  {
    files: ['**/*.{ts,tsx,mts}'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      globals: globals.browser,
      parserOptions: {
        project: './tsconfig.check.json',
        tsconfigRootDir: import.meta.dirname
      }
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      // Lumino's signals take a method and its object apart.
      '@typescript-eslint/unbound-method': 'off',
      // All of it together is smaller than one round trip is worth.
      'jupyter/prefer-lazy-imports': 'off',
      'no-console': 'error',
      eqeqeq: 'error',
      curly: ['error', 'all']
    }
  },
  {
    files: ['**/__tests__/**'],
    rules: { 'jupyter/no-untranslated-string': 'off' }
  },
  prettier
);
