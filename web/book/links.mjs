// Follows the links between Markdown files of the repository, and collects those that lead nowhere.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { headings, parse, references, target } from "./markdown.mjs";

export class Links {
  #root;
  #anchors = new Map();
  /** A sentence for each broken link. */
  faults = [];

  constructor(root) {
    this.#root = root;
  }

  /** Checks all links of a file without changing it. */
  check(file) {
    const tokens = parse(readFileSync(join(this.#root, file), "utf8"));
    for (const token of references(tokens)) {
      this.follow(file, target(token));
    }
  }

  /**
   * Returns the path and the anchor that a link in `file` leads to; `undefined` for other sites and
   * broken links.
   */
  follow(file, link) {
    if (/^[a-z]+:/.test(link)) {
      return undefined;
    }
    const [address, anchor = ""] = decodeURI(link).split("#");
    const path = address === "" ? file : normalize(join(dirname(file), address));
    if (path.startsWith("..") || !existsSync(join(this.#root, path))) {
      this.faults.push(`${file}: ${link}: there is no ${path}`);
      return undefined;
    }
    if (anchor !== "" && path.endsWith(".md") && !this.#anchorsOf(path).has(anchor)) {
      this.faults.push(`${file}: ${link}: ${path} has no heading #${anchor}`);
      return undefined;
    }
    return { path, anchor };
  }

  #anchorsOf(path) {
    let known = this.#anchors.get(path);
    if (known === undefined) {
      const tokens = parse(readFileSync(join(this.#root, path), "utf8"));
      known = new Set(headings(tokens).map(({ id }) => id));
      this.#anchors.set(path, known);
    }
    return known;
  }
}
