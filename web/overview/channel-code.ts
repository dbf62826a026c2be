// What to type elsewhere to see a channel in a browser.

/** Returns what publishes in `channel` from a terminal. */
export function publishCommandFor(channel: string): string {
  return `redis-cli PUBLISH ${quoted(channel)} '{"hello":"world"}'`;
}

/** Returns the code that shows what is published in `channel` of the server at `origin`. */
export function codeFor(channel: string, origin: string): string {
  return `import { connect } from "linerate";

const client = connect(${JSON.stringify(origin)});
const channel = client.subscribe(${JSON.stringify(channel)});

for await (const publication of channel) {
  console.log(publication.json());
}`;
}

/** Returns `word` as one word of a shell. */
function quoted(word: string): string {
  return /^[\w:.@/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
