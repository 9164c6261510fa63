import { readFile } from 'node:fs/promises';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [
    {
      name: 'svg-as-text',
      enforce: 'pre',
      async load(id) {
        if (!id.endsWith('.svg')) {
          return null;
        }
        return `export default ${JSON.stringify(await readFile(id, 'utf8'))}`;
      }
    }
  ],
  test: {
    include: ['src/**/__tests__/*.spec.{ts,tsx}'],
    environment: 'jsdom',
    testTimeout: 60_000,
    setupFiles: ['vitest.setup.ts'],
    server: { deps: { inline: [/@jupyterlab\//, /@lumino\//, /@jupyter\//] } }
  }
});
