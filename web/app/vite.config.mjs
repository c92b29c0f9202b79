import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// Two pages, each built by itself into its own folder, so that either can be
// served without the other: `vite build --mode dashboard`, `--mode playground`.
// Addresses are relative and everything lies in assets/ under a name that holds
// a hash of its content.
export default defineConfig(({ mode }) => {
  const page = mode === "playground" ? "playground" : "dashboard";
  return {
    root: fileURLToPath(new URL(`pages/${page}`, import.meta.url)),
    base: "./",
    // Libraries leave out their checks for developers.
    define: { "process.env.NODE_ENV": JSON.stringify("production") },
    build: {
      outDir: fileURLToPath(new URL(`../dist/${page}`, import.meta.url)),
      emptyOutDir: true,
      target: "es2022",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      // The licences of what is bundled.
      license: { fileName: "licenses.md" },
      reportCompressedSize: false,
      chunkSizeWarningLimit: 4_000,
      rolldownOptions: {
        // "use client" and its like say nothing to a page.
        onLog: (level, log, report) => log.code !== "MODULE_LEVEL_DIRECTIVE" && report(level, log),
      },
    },
    worker: { format: "es" },
    server: {
      proxy: {
        "/graphql": { target: "http://127.0.0.1:8080", ws: true },
        "/api": { target: "http://127.0.0.1:8080" },
      },
    },
  };
});
