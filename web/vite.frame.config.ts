import { defineConfig } from "vite";

/**
 * The scripts of the sandboxed frames, as classic scripts: a frame without an origin may not load modules.
 * They have fixed names, because `public/frame*.html` names them.
 */
const entry = process.env.FRAME_ENTRY ?? "frame";

export default defineConfig({
  publicDir: false,
  define: { "process.env.NODE_ENV": '"production"' },
  build: {
    target: "es2022",
    outDir: "dist/frame",
    emptyOutDir: false,
    lib: {
      entry: `src/frames/inside/${entry}.ts`,
      formats: ["iife"],
      name: "hartFrame",
      fileName: () => `${entry}.js`,
    },
  },
});
