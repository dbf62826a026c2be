// The commands and code to publish to a channel and to watch it elsewhere.

/** Returns a shell command that publishes to `channel`. */
export function publishCommandFor(channel: string): string {
  return `redis-cli PUBLISH ${quoted(channel)} '{"hello":"world"}'`;
}

/** Returns code that shows the publications in `channel` of the server at `origin`. */
export function codeFor(channel: string, origin: string): string {
  return `import { connect } from "linerate";

const client = connect(${JSON.stringify(origin)});
const channel = client.subscribe(${JSON.stringify(channel)});

for await (const publication of channel) {
  console.log(publication.json());
}`;
}

/** Returns `word` quoted for a shell. */
function quoted(word: string): string {
  return /^[\w:.@/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
