// Tags as people type them: `event=created, level=error`.

/** Parses tags; throws an `Error` that names what is wrong. */
export function parseTags(text: string): Record<string, string> {
  const parts = text.split(",").map((part) => part.trim());
  const tags = parts.filter((part) => part !== "").map(parseTag);
  // `fromEntries` also creates a tag named `__proto__`, instead of setting the prototype.
  return Object.fromEntries(tags);
}

function parseTag(part: string): [string, string] {
  const at = part.indexOf("=");
  if (at < 1) {
    throw new Error(`The tag ${JSON.stringify(part)} must have the form name=value.`);
  }
  return [part.slice(0, at).trim(), part.slice(at + 1).trim()];
}
