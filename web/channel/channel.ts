// The channel page `/channel?name=…`: what arrives in a channel, its history and presence, and how
// other clients subscribe to it.

import type { Publication } from "../client/src/linerate.js";
import { counted } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import { askForToken, connectTokenForm } from "../shared/token.js";
import { CodeBox } from "./code-box.js";
import { Credentials } from "./credentials.js";
import { type Action, explain } from "./explain.js";
import { Feed } from "./feed.js";
import { HistoryBox } from "./history-box.js";
import { MessageList } from "./message-list.js";
import { payloadOf } from "./message-row.js";
import { Meter } from "./meter.js";
import { visible } from "./payload.js";
import { PresenceBox } from "./presence-box.js";
import { PublishBox } from "./publish-box.js";
import { Rates } from "./rates.js";
import type { ClientAccess } from "./snippets.js";
import { WishesForm } from "./wishes-form.js";

/** What is assumed of a server that does not answer. */
const UNKNOWN_ACCESS: ClientAccess = {
  is_open: false,
  needs_token: false,
  protocols: ["native"],
  pusher_key: null,
};

const channel = (new URLSearchParams(location.search).get("name") ?? "").trim();
(element("name") as HTMLInputElement).value = channel;
connectTokenForm();
if (channel === "") {
  document.body.dataset["state"] = "unnamed";
  element("name").focus();
} else {
  document.body.dataset["state"] = "named";
  document.title = `${visible(channel)} · linerate`;
  setText(element("title"), visible(channel));
  void open();
}

async function open(): Promise<void> {
  const access = await accessOf().catch((error: unknown) => {
    setText(element("page-trouble"), `Cannot ask the server how clients connect: ${String(error)}`);
    return UNKNOWN_ACCESS;
  });
  const credentials = new Credentials(channel);
  await credentials.prepare(access).catch(() => {
    // Without access to the admin API, the page does what any client can do.
  });
  start(access, credentials);
}

async function accessOf(): Promise<ClientAccess> {
  const response = await fetch("/channel/clients", { cache: "no-store" });
  if (!response.ok) {
    throw new Error(`status ${response.status}`);
  }
  return (await response.json()) as ClientAccess;
}

function start(access: ClientAccess, credentials: Credentials): void {
  const meters = { published: new Meter(), received: new Meter() };
  const list = new MessageList();
  const state = element("state");
  const trouble = element("page-trouble");
  let missed = 0;
  const because = (action: Action) => (error: unknown) =>
    explain(action, channel, error, credentials.namespaces);

  const form = new WishesForm(() => {
    meters.published.reset();
    meters.received.reset();
    list.clear();
    feed.wish(form.wishes);
    code.show();
    account();
  });
  const isSplit = () => Object.keys(form.wishes).length > 0;
  const account = () => form.showAccount(meters.published, meters.received);

  const feed = new Feed(channel, credentials, {
    state(kind, text) {
      document.body.dataset["live"] = kind;
      setText(state, text);
    },
    disconnected: askForToken,
    refused(which, error) {
      const text = because("subscribe")(error);
      if (which === "received") {
        form.showTrouble(text);
        return;
      }
      document.body.dataset["live"] = "refused";
      setText(state, "not subscribed");
      setText(trouble, text);
    },
    subscribed(which) {
      if (which === "received") {
        form.showTrouble("");
        return;
      }
      setText(trouble, "");
      void history.load();
      void presence.load();
    },
    batch(which, batch) {
      meters[which].add(batch.length, bytesOf(batch));
      if ((which === "received") === isSplit()) {
        list.add(batch, channel);
      }
    },
    missed(count) {
      missed += count ?? 0;
      const text =
        count === undefined ? "some messages were missed" : `${counted(missed, "message")} missed`;
      setText(element("missed"), text);
    },
    join: (info) => presence.add("joined", info),
    leave: (info) => presence.add("left", info),
  });
  const history = new HistoryBox(feed.client, channel, because("history"));
  const presence = new PresenceBox(feed, channel, because("presence"));
  const publish = new PublishBox(feed.client, channel, credentials, because("publish"), () =>
    code.show(),
  );
  const code = new CodeBox(access, () => ({
    channel,
    tokens: credentials.tokens,
    wishes: form.wishes,
    payload: publish.json,
  }));
  new Rates(meters, isSplit, account);
  account();
  document.body.dataset["ready"] = "";
}

function bytesOf(batch: readonly Publication[]): number {
  return batch.reduce((sum, publication) => sum + payloadOf(publication).length, 0);
}
