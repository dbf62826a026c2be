// The commands and code to publish to a channel and to watch it elsewhere.

/** Returns a shell command that publishes to `channel`. */
export function publishCommandFor(channel: string): string {
  return `redis-cli PUBLISH ${quoted(channel)} '{"hello":"world"}'`;
}

/**
 * Returns code that shows the publications in `channel` of the server at `origin`. With
 * `needsToken`, it gets a token from the application, because tokens expire.
 */
export function codeFor(channel: string, origin: string, needsToken: boolean): string {
  const server = JSON.stringify(origin);
  const connection = needsToken
    ? `connect(${server}, {
  token: async () => (await fetch("/your-token")).text(),
})`
    : `connect(${server})`;
  return `import { connect } from "linerate";

const client = ${connection};
const channel = client.subscribe(${JSON.stringify(channel)});

for await (const publication of channel) {
  console.log(publication.json());
}`;
}

/** Returns `word` quoted for a shell. */
function quoted(word: string): string {
  return /^[\w:.@/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
