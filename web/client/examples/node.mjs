// A Node.js program that receives a channel and publishes to it.
//
//   npm install linerate ws        (ws: only for Node.js before version 22)
//   node node.mjs http://127.0.0.1:8080 demo:node

import { connect } from "linerate";

const [url = "http://127.0.0.1:8080", channel = "demo:node"] = process.argv.slice(2);
const client = connect(url, { name: "node" });

client.on("connected", ({ transport }) => console.error(`connected over ${transport}`));
client.on("connecting", ({ reason, retryInMs }) =>
  console.error(`${reason}; trying again in ${retryInMs} ms`),
);
// Refused by the server, or no WebSocket is installed: the reason says what to do.
client.on("disconnected", ({ code, reason }) => {
  console.error(reason);
  process.exitCode = code === 0 ? 0 : 1;
});
process.once("SIGINT", () => client.close());

const subscription = client.subscribe(channel);
subscription.on("gap", ({ missed, cause }) =>
  console.error(`${missed ?? "some"} missed: ${cause}`),
);
subscription.on("subscribed", () =>
  client.publish(channel, { from: process.pid }).catch(console.error),
);
try {
  for await (const publication of subscription) {
    console.log(publication.text());
  }
} catch (error) {
  console.error(error.message);
}
