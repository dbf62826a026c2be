// All nodes on the broker.

import { grouped, humanDuration } from "../shared/format.js";
import { element } from "../shared/page.js";
import { Table } from "./table.js";
import type { Node, Nodes } from "./views.js";

export class NodesPanel {
  readonly #table = new Table<Node>(
    element("nodes"),
    [
      { name: "name", text: ({ name }) => name, title: ({ id }) => id },
      { name: "number", text: ({ clients }) => grouped(clients) },
      { name: "number", text: ({ subscriptions }) => grouped(subscriptions) },
      { name: "number", text: ({ channels }) => grouped(channels) },
      { name: "number minor", text: ({ uptime_s }) => humanDuration(uptime_s) },
      { name: "minor", text: ({ version }) => version },
    ],
    "No node has reported yet.",
  );

  show(view: Nodes): void {
    this.#table.show(view.nodes);
  }
}
