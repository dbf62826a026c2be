// Bundles the pages into dist/, which the server embeds; with --tests, the unit tests into
// .build/tests/.
//
// dist/index.html, dist/logs.html, dist/admin.html and dist/channel.html are the pages `/`,
// `/logs`, `/admin` and `/channel`; dist/docs/ has the book, `/docs/`; dist/error.html is what a
// browser shows instead of an error's text. Everything that they load is in dist/assets/ and served
// as /assets/<name>, including the npm package as linerate.js. Text files have compressed copies
// beside them. dist/report.html is the file that `linerate logs --html` writes, without a log.

import { cp, mkdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { buildBook } from "./book/build.mjs";
import { compressAll } from "./compress.mjs";
import { buildReport } from "./report.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const inHere = (path) => here + path;

/** What the bundles of all pages have in common. */
const OPTIONS = {
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome111", "firefox113", "safari16.4"],
  logLevel: "info",
};

if (process.argv.includes("--tests")) {
  await buildTests();
} else {
  await buildPages();
}

async function buildPages() {
  await rm(inHere("dist"), { recursive: true, force: true });
  await mkdir(inHere("dist/assets"), { recursive: true });
  await build({
    absWorkingDir: here,
    entryPoints: [
      "admin/admin.ts",
      "admin/admin.css",
      "book/book.ts",
      "book/book.css",
      "channel/channel.ts",
      "channel/channel.css",
      "client/src/linerate.ts",
      "overview/overview.ts",
      "overview/overview.css",
      "logs/logs.ts",
      "logs/logs.css",
      "logs/session-worker.ts",
    ],
    ...OPTIONS,
    outdir: "dist/assets",
    entryNames: "[name]",
    assetNames: "[name]",
    external: ["/assets/*"],
    loader: { ".woff2": "file" },
    legalComments: "linked",
  });
  await cp(inHere("overview/index.html"), inHere("dist/index.html"));
  await cp(inHere("logs/logs.html"), inHere("dist/logs.html"));
  await cp(inHere("admin/admin.html"), inHere("dist/admin.html"));
  await cp(inHere("channel/channel.html"), inHere("dist/channel.html"));
  await cp(inHere("shared/error.html"), inHere("dist/error.html"));
  await cp(inHere("shared/favicon.svg"), inHere("dist/assets/favicon.svg"));
  await cp(inHere("shared/sketch.svg"), inHere("dist/assets/sketch.svg"));
  // The licences require that they are distributed with the bundle.
  await cp(inHere("node_modules/uplot/LICENSE"), inHere("dist/assets/uplot.LICENSE.txt"));
  await cp(
    inHere("node_modules/@fontsource-variable/inter/LICENSE"),
    inHere("dist/assets/inter.LICENSE.txt"),
  );
  await cp(
    inHere("node_modules/minisearch/LICENSE.txt"),
    inHere("dist/assets/minisearch.LICENSE.txt"),
  );
  await buildBook(inHere(".."), inHere("dist/docs"));
  await compressAll(inHere("dist"));
  await buildReport(here, OPTIONS, inHere("../.cache/report.wasm"));
}

async function buildTests() {
  await rm(inHere(".build"), { recursive: true, force: true });
  await build({
    absWorkingDir: here,
    entryPoints: ["tests/unit/**/*.test.ts"],
    outdir: ".build/tests",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    logLevel: "warning",
  });
}
