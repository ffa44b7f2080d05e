import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// One HTML file with all scripts and styles; `iosonde report` embeds the results.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    target: 'es2022',
    rollupOptions: { input: 'report.html' },
    reportCompressedSize: false,
  },
});
