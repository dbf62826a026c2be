// Reads Markdown as GitHub does: the same tables, the same anchors, code with colours.

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import ini from "highlight.js/lib/languages/ini";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import rust from "highlight.js/lib/languages/rust";
import xml from "highlight.js/lib/languages/xml";
import MarkdownIt from "markdown-it";
import anchor from "markdown-it-anchor";

// `ini` reads TOML, and `xml` HTML, by these names too.
for (const [name, language] of Object.entries({ bash, ini, javascript, json, rust, xml })) {
  hljs.registerLanguage(name, language);
}

const markdown = new MarkdownIt({ html: true, highlight }).use(anchor, {
  slugify,
  tabIndex: false,
  permalink: anchor.permalink.headerLink(),
});
markdown.core.ruler.push("alignment", alignByClass);
markdown.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
markdown.renderer.rules.table_close = () => "</table></div>\n";

export const parse = (text) => markdown.parse(text, {});
export const render = (tokens) => markdown.renderer.render(tokens, markdown.options, {});

/** Returns the headings of a page: level, anchor and text. */
export function headings(tokens) {
  return tokens.flatMap((token, index) =>
    token.type === "heading_open"
      ? [
          {
            level: Number(token.tag[1]),
            id: token.attrGet("id"),
            text: textOf(tokens[index + 1]),
          },
        ]
      : [],
  );
}

/** Returns the tokens of a page that refer to something else, links and images. */
export function references(tokens) {
  return tokens.flatMap((token) => token.children ?? []).filter((token) => target(token) !== null);
}

/**
 * Returns the target of a link or an image; `null` for other tokens and the links of headings to
 * themselves.
 */
export function target(token) {
  switch (token.type) {
    case "image":
      return token.attrGet("src");
    case "link_open":
      return token.attrGet("class") === "header-anchor" ? null : token.attrGet("href");
    default:
      return null;
  }
}

/** Returns the text under each heading of a page, to be searched. */
export function sections(tokens) {
  const found = [];
  tokens.forEach((token, index) => {
    if (token.type === "heading_open") {
      found.push({ id: token.attrGet("id"), title: textOf(tokens[index + 1]), text: "" });
    } else if (found.length > 0 && tokens[index - 1]?.type !== "heading_open") {
      found.at(-1).text += `${textOf(token)} `;
    }
  });
  return found;
}

function textOf(token) {
  if (token.type === "fence" || token.type === "code_block") {
    return token.content;
  }
  const words = (token.children ?? []).map(({ type, content }) =>
    type === "softbreak" ? " " : content,
  );
  return words.join("").trim();
}

/** `info` may add a word for the tests of the code, as in `rust,no_run`. */
function highlight(code, info) {
  const [language] = info.split(",");
  return hljs.getLanguage(language) ? hljs.highlight(code, { language }).value : "";
}

/** Returns the anchor that GitHub gives to a heading. */
function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");
}

/** Columns are aligned by classes: the server's Content-Security-Policy forbids `style`. */
function alignByClass({ tokens }) {
  for (const token of tokens) {
    const [, side] = /^text-align:(\w+)$/.exec(token.attrGet("style") ?? "") ?? [];
    if (side !== undefined) {
      token.attrs = [["class", side]];
    }
  }
}
