// Builds dist/report.html: the log page and its engine in one file without the log, which
// `linerate logs --html` writes in place of {{report}}.

import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** The largest file without the log, in bytes: a part of the size that reports may have. */
const BYTES_MAX = 560_000;

/** `options` are those of the other pages, `engine` is the path of the engine. */
export async function buildReport(here, options, engine) {
  const { outputFiles } = await build({
    ...options,
    absWorkingDir: here,
    entryPoints: ["logs/report.ts", "logs/logs.css"],
    outdir: "dist",
    write: false,
    legalComments: "none",
    external: ["/assets/*"],
    loader: { ".woff2": "empty" },
  });
  const output = (extension) =>
    outputFiles.find(({ path }) => path.endsWith(extension)).text.trim();
  const icon = await readFile(`${here}shared/favicon.svg`, "base64");
  const style = withoutAssets(output(".css"));
  const script = output(".js");
  const program = gzipSync(await readFile(engine), { level: 9 }).toString("base64");
  const licence = await readFile(`${here}node_modules/uplot/LICENSE`, "utf8");
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)} 'wasm-unsafe-eval'`,
    `style-src ${hashOf(style)}`,
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const head = `<meta http-equiv="Content-Security-Policy" content="${policy}" />
    <link rel="icon" type="image/svg+xml" href="data:image/svg+xml;base64,${icon}" />
    <!-- The chart is drawn by uPlot:
${licence.trim()}
    -->
    <style>${style}</style>
    <script type="text/plain" data-testid="report">{{report}}</script>
    <script type="text/plain" data-testid="engine">${program}</script>
    <script type="module">${script}</script>
  </head>`;
  const page = (await readFile(`${here}logs/logs.html`, "utf8"))
    .replaceAll(/\n *<!-- only at a server -->.*?<!-- end -->/gs, "")
    .replace("<title>Logs ·", "<title>Report ·")
    .replace("</head>", () => head);
  if (page.length > BYTES_MAX) {
    throw new Error(`report.html has ${page.length} bytes without a log, more than ${BYTES_MAX}`);
  }
  await writeFile(`${here}dist/report.html`, page);
}

/** Removes the font, for which the system's is shown, and the pictures of the server's pages. */
function withoutAssets(style) {
  const without = style
    .replaceAll(/@font-face *\{[^}]*\}/g, "")
    .replaceAll(/background: *url\("?\/assets\/[^;}]*/g, "background:none");
  if (/url\("?[^d"]/.test(without)) {
    throw new Error("the style of a report loads a file");
  }
  return without;
}

function hashOf(text) {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
