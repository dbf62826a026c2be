// A subscriber for `make chaos`: the npm package `centrifuge` with its defaults, one client per
// channel.
//
//   node subscriber.mjs ENDPOINT CHANNEL…
//
// Each event is a line of JSON on stdout. The program that starts this one checks the numbers in
// publications.

import { writeSync } from "node:fs";
import { Centrifuge } from "centrifuge";
import WebSocket from "ws";

const BACK_AFTER_MS = 200;

const [endpoint, ...channels] = process.argv.slice(2);

function tell(channel, event, details = {}) {
  writeSync(1, `${JSON.stringify({ channel, event, ...details })}\n`);
}

/** Repeats what the SDK has permanently stopped doing. */
function again(act) {
  setTimeout(act, BACK_AFTER_MS);
}

for (const channel of channels) {
  const client = new Centrifuge(endpoint, {
    websocket: WebSocket,
    minReconnectDelay: 100,
    maxReconnectDelay: 500,
  });
  client.on("error", ({ error }) => tell(channel, "error", { code: error.code }));
  client.on("connecting", ({ code }) => tell(channel, "connecting", { code }));
  client.on("connected", () => tell(channel, "connected"));
  client.on("disconnected", ({ code }) => {
    tell(channel, "disconnected", { code });
    again(() => client.connect());
  });
  const subscription = client.newSubscription(channel, {
    minResubscribeDelay: 100,
    maxResubscribeDelay: 500,
  });
  subscription.on("error", ({ error }) => tell(channel, "error", { code: error.code }));
  subscription.on("subscribing", ({ code }) => tell(channel, "subscribing", { code }));
  subscription.on("subscribed", ({ wasRecovering, recovered }) =>
    tell(channel, "subscribed", { was_recovering: wasRecovering, recovered }),
  );
  subscription.on("unsubscribed", ({ code }) => {
    tell(channel, "unsubscribed", { code });
    again(() => subscription.subscribe());
  });
  subscription.on("publication", ({ data, offset }) =>
    tell(channel, "publication", { number: data.n, offset }),
  );
  subscription.subscribe();
  client.connect();
}
