import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Where `npm run dev` finds a running hart. */
const server = process.env.HART_URL ?? "http://127.0.0.1:2026";

export default defineConfig({
  plugins: [react()],
  server: { proxy: { "/api": { target: server, changeOrigin: true } } },
  build: {
    target: "es2022",
    // Everything is a file of its own: the page's policy allows no inline data but images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    chunkSizeWarningLimit: 900,
  },
});
