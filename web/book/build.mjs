// Builds the book: the Markdown pages in docs/ as HTML, with a search index. A broken link anywhere
// in the Markdown of the repository is an error.
//
// docs/README.md is the table of contents: each of its second headings is a part, and the list
// below it has the pages of the part in the order in which they are read. GitHub shows the same
// files with the same links.

import { cp, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { Links } from "./links.mjs";
import { headings, parse, render, sections, target } from "./markdown.mjs";
import { frame } from "./template.mjs";

const CONTENTS = "docs/README.md";
const UNREAD = new Set([".cache", ".git", "dist", "node_modules", "results", "target"]);

/** Builds the pages in `root`/docs into `output`, and returns how many there are. */
export async function buildBook(root, output) {
  const files = await markdownFiles(root);
  const links = new Links(root);
  const { pages, parts, faults } = await readPages(root, files);
  const images = new Set();
  for (const page of pages) {
    rewriteLinks(page, links, images);
  }
  for (const file of files.filter((file) => !file.startsWith("docs/"))) {
    links.check(file);
  }
  faults.push(...links.faults);
  if (faults.length > 0) {
    throw new Error(`the documentation has ${faults.length} faults\n${faults.join("\n")}`);
  }

  await Promise.all(
    pages.map(async (page, index) => {
      const html = frame({
        page,
        body: render(page.tokens),
        parts,
        before: pages[index - 1],
        after: pages[index + 1],
      });
      await write(join(output, page.url), html);
    }),
  );
  for (const image of images) {
    await cp(join(root, image), join(output, relative("docs", image)));
  }
  await write(join(output, "search.json"), JSON.stringify(searchable(pages)));
  return pages.length;
}

async function markdownFiles(root, folder = "") {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  const found = entries.map((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return UNREAD.has(entry.name) ? [] : markdownFiles(root, path);
    }
    return path.endsWith(".md") ? [path] : [];
  });
  return (await Promise.all(found)).flat().sort();
}

/** Reads all pages in the order of the contents; each page has to be listed there once. */
async function readPages(root, files) {
  const faults = [];
  const contents = await readPage(root, CONTENTS);
  const parts = partsOf(contents.tokens);
  const listed = parts.flatMap((part) => part.files);
  for (const file of files.filter((file) => file.startsWith("docs/") && file !== CONTENTS)) {
    const times = listed.filter((other) => other === file).length;
    if (times !== 1) {
      faults.push(`${CONTENTS}: lists ${file} ${times} times`);
    }
  }
  const pages = [contents];
  for (const part of parts) {
    const known = part.files.filter((file) => files.includes(file));
    part.pages = await Promise.all(known.map((file) => readPage(root, file)));
    for (const page of part.pages) {
      page.part = part.title;
      page.label = part.labels[part.files.indexOf(page.file)];
    }
    pages.push(...part.pages);
  }
  for (const page of pages.filter(({ title }) => title === undefined)) {
    faults.push(`${page.file}: has no title`);
  }
  return { pages, parts, faults };
}

async function readPage(root, file) {
  const tokens = parse(await readFile(join(root, file), "utf8"));
  const outline = headings(tokens);
  return {
    file,
    url: file === CONTENTS ? "index.html" : relative("docs", file).replace(/\.md$/, ".html"),
    title: outline.find(({ level }) => level === 1)?.text,
    outline: outline.filter(({ level }) => level === 2),
    tokens,
  };
}

/** Returns the parts in the table of contents, with the files and the labels of each. */
function partsOf(tokens) {
  const parts = [];
  tokens.forEach((token, index) => {
    if (token.type === "heading_open" && token.tag === "h2") {
      parts.push({ title: tokens[index + 1].content, files: [], labels: [] });
    }
    const [link, label] = token.children ?? [];
    const isItem = tokens[index - 2]?.type === "list_item_open";
    if (isItem && parts.length > 0 && link?.type === "link_open") {
      parts.at(-1).files.push(join("docs", link.attrGet("href")));
      parts.at(-1).labels.push(label.content);
    }
  });
  return parts.filter((part) => part.files.length > 0);
}

/**
 * Makes links lead to pages of the book. Links to other files of the repository become text that
 * names the file.
 */
function rewriteLinks(page, links, images) {
  const closing = [];
  for (const token of page.tokens.flatMap(({ children }) => children ?? [])) {
    if (token.type === "link_close" && closing.length > 0) {
      token.tag = closing.pop();
    }
    const link = target(token);
    if (token.type === "link_open") {
      closing.push("a");
    }
    const found = link === null ? undefined : links.follow(page.file, link);
    if (found === undefined) {
      continue;
    }
    const { path, anchor } = found;
    if (token.type === "image") {
      images.add(path);
    } else if (path.startsWith("docs/") && path.endsWith(".md")) {
      const url = path === CONTENTS ? "docs/index.html" : path.replace(/\.md$/, ".html");
      const way = path === page.file ? "" : relative(dirname(page.file), url);
      token.attrSet("href", anchor === "" ? way : `${way}#${anchor}`);
    } else {
      token.tag = closing[closing.length - 1] = "span";
      token.attrs = [
        ["class", "source"],
        ["title", `${path}, in the repository`],
      ];
    }
  }
}

/** Returns what the search looks at: one entry for each heading. */
function searchable(pages) {
  return pages.flatMap((page) =>
    sections(page.tokens).map(({ id, title, text }) => ({
      url: `${page.url}#${id}`,
      page: page.title,
      title,
      text: text.replace(/\s+/g, " ").trim(),
    })),
  );
}

async function write(path, content) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}
