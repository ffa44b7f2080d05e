import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

const text = (path: string) =>
  readFileSync(new URL(`node_modules/${path}`, import.meta.url), 'utf8').trim();

/** Notices that the licences of the bundled libraries require in each report. */
function notices(): Plugin {
  const all = [
    'This page contains these libraries:',
    `${text('echarts/NOTICE')}\nLicensed under the Apache License, Version 2.0: ` +
      'https://www.apache.org/licenses/LICENSE-2.0',
    `Parts of D3, in Apache ECharts:\n${text('echarts/licenses/LICENSE-d3')}`,
    `ZRender:\n${text('zrender/LICENSE')}`,
  ];
  // HTML forbids two hyphens in a comment.
  const comment = `<!--\n${all.join('\n\n').replaceAll('--', '- -')}\n-->\n`;
  return {
    name: 'notices',
    transformIndexHtml: {
      order: 'post',
      handler: (html) => html.replace('</body>', () => `${comment}</body>`),
    },
  };
}

// One HTML file with all scripts and styles; `iosonde report` embeds the results.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), notices()],
  build: {
    target: 'es2022',
    rollupOptions: { input: 'report.html' },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
  },
});
