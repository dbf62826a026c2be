// What surrounds the text of a page: the masthead, the contents, the way to the next page.

import { dirname, relative } from "node:path";

const escape = (text) =>
  text.replace(
    /[&<>"]/g,
    (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign],
  );

/** Returns the HTML of a page around its rendered text. */
export function frame({ page, body, parts, before, after }) {
  const to = (url) => relative(dirname(`docs/${page.url}`), url);
  const asset = (name) => to(`assets/${name}`);
  const title = page.part === undefined ? "Documentation" : escape(page.title);
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${title} · linerate</title>
    <link rel="icon" type="image/svg+xml" href="${asset("favicon.svg")}" />
    <link rel="preload" as="font" type="font/woff2" href="${asset("inter-latin-wght-normal.woff2")}" crossorigin />
    <link rel="stylesheet" href="${asset("book.css")}" />
    <script type="module" src="${asset("book.js")}"></script>
  </head>
  <body data-book="${to("docs/") || "."}">
    <a class="skip" href="#main">Skip to content</a>
    <header class="masthead">
      <a class="wordmark" href="/">linerate</a>
      <nav aria-label="Pages">
        <a href="/">Overview</a>
        <a href="/logs">Logs</a>
        <a href="/admin">Admin</a>
        <a href="${to("docs/index.html")}" aria-current="page">Docs</a>
      </nav>
    </header>

    <div class="tools">
      <button type="button" class="contents-button" popovertarget="contents">Contents</button>
      <form class="search" role="search" data-testid="search" hidden>
        <label for="search-input" class="unseen">Search the documentation</label>
        <input id="search-input" data-testid="search-input" type="search" placeholder="Search (/)" autocomplete="off" maxlength="100" />
        <p class="unseen" role="status" data-testid="search-state"></p>
        <ol class="results" data-testid="search-results" hidden></ol>
      </form>
    </div>

    <div class="book">
      <nav class="contents" id="contents" aria-label="Contents" popover>
${parts.map((part) => contents(part, page, to)).join("\n")}
      </nav>

      <main id="main">
        <article class="prose">
${body}
        </article>
        <nav class="turn" aria-label="Next pages">
          ${before === undefined ? "" : turn("prev", "Previous", before, to)}
          ${after === undefined ? "" : turn("next", "Next", after, to)}
        </nav>
      </main>
${page.part === undefined || page.outline.length < 2 ? "" : outline(page)}
    </div>
  </body>
</html>
`;
}

function contents(part, page, to) {
  const items = part.pages.map((other) => {
    const current = other === page ? ' aria-current="page"' : "";
    return `          <li><a href="${to(`docs/${other.url}`)}"${current}>${escape(other.label)}</a></li>`;
  });
  return `        <h2>${escape(part.title)}</h2>
        <ul>
${items.join("\n")}
        </ul>`;
}

function turn(rel, label, page, to) {
  return `<a class="turn-${rel}" rel="${rel}" href="${to(`docs/${page.url}`)}"><span class="note">${label}</span>${escape(page.title)}</a>`;
}

function outline(page) {
  const items = page.outline.map(
    ({ id, text }) => `          <li><a href="#${id}">${escape(text)}</a></li>`,
  );
  return `      <nav class="outline" aria-labelledby="outline-title">
        <h2 id="outline-title">On this page</h2>
        <ul>
${items.join("\n")}
        </ul>
      </nav>`;
}
