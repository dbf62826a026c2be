// The build of the book: what it refuses, and what it makes of links.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { buildBook } from "../book/build.mjs";
import { headings, parse } from "../book/markdown.mjs";

const CONTENTS = "# Book\n\n## Part\n\n- [First](part/first.md)\n- [Second](part/second.md)\n";
const PAGES = {
  "docs/README.md": CONTENTS,
  "docs/part/first.md": "# First page\n\n[on](second.md#a-heading-with-code)\n",
  "docs/part/second.md": "# Second page\n\n## A heading, with `code`!\n\nText.\n",
  "README.md": "[docs](docs/README.md#part)\n",
};

/** Builds a book of some files, and returns how to read its pages. */
async function build(t, changes) {
  const folder = await mkdtemp(join(tmpdir(), "linerate-book-"));
  t.after(() => rm(folder, { recursive: true }));
  for (const [path, text] of Object.entries({ ...PAGES, ...changes })) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const output = join(folder, "dist");
  await buildBook(folder, output);
  return (path) => readFile(join(output, path), "utf8");
}

test("pages link to each other, to the contents and to their neighbours", async (t) => {
  const read = await build(t, {});
  const first = await read("part/first.html");
  assert.match(first, /<a href="second.html#a-heading-with-code">on<\/a>/);
  assert.match(first, /<a href="first.html" aria-current="page">First<\/a>/);
  assert.match(first, /rel="next" href="second.html"/);
  assert.match(first, /rel="prev" href="..\/index.html"/);
  assert.match(await read("index.html"), /href="part\/second.html"/);
});

test("the search knows each heading", async (t) => {
  const read = await build(t, {});
  const sections = JSON.parse(await read("search.json"));
  assert.deepEqual(
    sections.find(({ url }) => url === "part/second.html#a-heading-with-code"),
    {
      url: "part/second.html#a-heading-with-code",
      page: "Second page",
      title: "A heading, with code!",
      text: "Text.",
    },
  );
});

test("a link to another file of the repository becomes text that names it", async (t) => {
  const read = await build(t, { "docs/part/first.md": "# First\n\n[readme](../../README.md)\n" });
  const page = await read("part/first.html");
  assert.match(page, /<span class="source" title="README.md, in the repository">readme<\/span>/);
});

test("nothing on a page needs an inline style or script", async (t) => {
  const table = "# First\n\n| a | b |\n| --- | ---: |\n| c | d |\n\n```rust\nfn main() {}\n```\n";
  const read = await build(t, { "docs/part/first.md": table });
  const page = await read("part/first.html");
  assert.match(page, /<td class="right">d<\/td>/);
  assert.match(page, /hljs-keyword/);
  assert.doesNotMatch(page, / style=| on[a-z]+=|<style|<script(?! type="module" src=)/);
});

for (const [what, changes, fault] of [
  [
    "page",
    { "docs/part/first.md": "# First\n\n[on](third.md)\n" },
    "there is no docs/part/third.md",
  ],
  ["anchor", { "docs/part/first.md": "# First\n\n[on](second.md#b)\n" }, "has no heading #b"],
  ["anchor on the same page", { "README.md": "[a](#b)\n" }, "README.md has no heading #b"],
  ["image", { "docs/part/first.md": "# First\n\n![a](b.png)\n" }, "there is no docs/part/b.png"],
  ["link in the README", { "README.md": "[a](docs/gone.md)\n" }, "there is no docs/gone.md"],
]) {
  test(`a broken ${what} fails the build`, async (t) => {
    await assert.rejects(build(t, changes), (error) => error.message.includes(fault));
  });
}

test("a page that the contents do not list fails the build", async (t) => {
  const unlisted = { "docs/part/third.md": "# Third\n" };
  await assert.rejects(build(t, unlisted), /lists docs\/part\/third.md 0 times/);
});

test("anchors are those of GitHub", () => {
  const text = "# A – b: `c_d` (e)!\n\n## Same\n\n## Same\n\n## Größe & Maß\n";
  const anchors = headings(parse(text)).map(({ id }) => id);
  assert.deepEqual(anchors, ["a--b-c_d-e", "same", "same-1", "größe--maß"]);
});
