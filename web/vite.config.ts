import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// One HTML file with all scripts and styles inside: `iosonde report` puts the results into it.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    target: 'es2022',
    rollupOptions: { input: 'report.html' },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
  },
});
