// The admin page `/admin`: asks for the key, then keeps its panels up to date.

import { element, setText } from "../shared/page.js";
import { AdminApi, Refused } from "../shared/admin-api.js";
import { showBroker } from "./broker.js";
import { ChannelsPanel } from "./channels.js";
import { ConnectionsPanel } from "./connections.js";
import { NodesPanel } from "./nodes.js";
import { ask } from "./question.js";
import { SettingsPanel } from "./settings.js";
import { Tail } from "./tail.js";
import { Timelines } from "./timelines.js";
import { showTotals } from "./totals.js";
import type { BrokerLink, Done, Nodes, Overview } from "./views.js";

/** How often figures are requested. */
const REFRESH_MS = 1_000;
/** Tables and the broker are requested less often than the totals: only every nth time. */
const SLOWLY = 2;
/** The configuration changes only when it is reloaded. */
const RARELY = 30;

const api = new AdminApi();
const tail = new Tail(api);
const report = (text: string) => setText(element("report"), text);
const connections = new ConnectionsPanel(api, report);
const channels = new ChannelsPanel(api, (channel) => {
  tail.follow(channel);
  element("tail-title").scrollIntoView({ block: "start" });
  element("tail-stop").focus();
});
const nodes = new NodesPanel();
const timelines = new Timelines(api);
const settings = new SettingsPanel(api);
let rounds = 0;
/** Counts runs of the loop: a run that sees another number than its own has been replaced. */
let run = 0;

element("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = element("key") as HTMLInputElement;
  api.key = input.value;
  input.value = "";
  setText(element("key-trouble"), "");
  start();
});
element("forget-key").addEventListener("click", () => {
  api.key = null;
  tail.stop();
  askForKey("");
});
element("drain").addEventListener("click", () => void drain());
element("undrain").addEventListener("click", () => void undrain());
start();

/** Requests the figures repeatedly until the server refuses the key. */
function start(): void {
  run += 1;
  rounds = 0;
  void refresh(run);
}

async function refresh(mine: number): Promise<void> {
  try {
    await refreshOnce();
    if (mine === run) {
      showState("live", "live");
    }
  } catch (error) {
    if (mine !== run) {
      return;
    }
    if (error instanceof Refused && error.wantsKey) {
      askForKey(api.key === null ? "" : `The server refused this key: ${error.message}.`);
      return;
    }
    showTrouble(error);
  }
  setTimeout(() => {
    if (mine === run) {
      void refresh(mine);
    }
  }, REFRESH_MS);
}

async function refreshOnce(): Promise<void> {
  // The page is hidden: the server need not count.
  if (document.hidden && rounds > 0) {
    return;
  }
  const overview = await api.get<Overview>("overview");
  showTotals(overview);
  await timelines.refresh(overview.node.id);
  if (rounds % SLOWLY === 0) {
    const [broker, known] = await Promise.all([
      api.get<BrokerLink>("broker"),
      api.get<Nodes>("nodes"),
      connections.refresh(),
      channels.refresh(),
    ]);
    showBroker(broker);
    nodes.show(known);
  }
  if (rounds % RARELY === 0) {
    await settings.refresh();
  }
  rounds += 1;
}

function showTrouble(error: unknown): void {
  const why =
    error instanceof Refused
      ? `the server reported an error: ${error.message}`
      : "cannot reach the server";
  showState("lost", `${why}; retrying …`);
}

function showState(state: "live" | "lost", text: string): void {
  document.body.dataset["live"] = state;
  if (state === "live") {
    document.body.dataset["state"] = "open";
  }
  element("forget-key").hidden = api.key === null;
  setText(element("live-state"), text);
}

function askForKey(trouble: string): void {
  run += 1;
  api.key = null;
  document.body.dataset["state"] = "locked";
  setText(element("key-trouble"), trouble);
  element("key").focus();
}

async function drain(): Promise<void> {
  const answer = await ask({
    title: "Drain this node?",
    detail:
      "It reports that it is not ready, and disconnects its clients over the configured period. " +
      "They reconnect to other nodes if there are any.",
    verb: "Drain",
  });
  if (answer === undefined) {
    return;
  }
  try {
    await api.post<Done>("drain", {});
    report("The node is draining.");
  } catch (error) {
    report(`Cannot drain the node: ${String(error)}`);
  }
}

async function undrain(): Promise<void> {
  try {
    await api.post<Done>("undrain", {});
    report("The node accepts clients again.");
  } catch (error) {
    report(`Cannot accept clients again: ${String(error)}`);
  }
}
