// The connections, slowest first, with a button to disconnect each.

import { grouped, humanBytes, humanDuration } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import type { AdminApi } from "../shared/admin-api.js";
import { ask } from "./question.js";
import { Table } from "./table.js";
import type { Connection, Connections, Done } from "./views.js";

const LIMIT = 50;

export class ConnectionsPanel {
  readonly #api: AdminApi;
  readonly #report: (text: string) => void;
  readonly #sort = element("connections-sort") as HTMLSelectElement;
  readonly #channel = element("connections-channel") as HTMLInputElement;
  readonly #table: Table<Connection>;

  /** `report` is called with the result of disconnecting a client. */
  constructor(api: AdminApi, report: (text: string) => void) {
    this.#api = api;
    this.#report = report;
    this.#table = new Table<Connection>(
      element("connections"),
      [
        { name: "name", text: nameOf, title: ({ client }) => client },
        { name: "number", text: ({ lag_ms }) => lagText(lag_ms) },
        { name: "number", text: ({ pending_bytes }) => humanBytes(pending_bytes) },
        { name: "number minor", text: ageOf },
        { name: "minor", text: ({ protocol, transport }) => wayOf(protocol, transport) },
        { name: "minor", text: ({ peer, agent }) => [peer, agent].filter(Boolean).join(" ") },
        { name: "minor list", text: channelsOf, title: ({ channels }) => channels.join("\n") },
      ],
      "No client is connected.",
      {
        label: "Disconnect",
        describe: (connection) => `Disconnect ${nameOf(connection)}`,
        act: (connection) => void this.#disconnect(connection),
      },
    );
    for (const control of [this.#sort, this.#channel]) {
      control.addEventListener("change", () => void this.refresh().catch(() => {}));
    }
  }

  async refresh(): Promise<void> {
    const query = new URLSearchParams({ sort: this.#sort.value, limit: String(LIMIT) });
    const channel = this.#channel.value.trim();
    if (channel !== "") {
      query.set("channel", channel);
    }
    const view = await this.#api.get<Connections>(`connections?${query}`);
    this.#table.show(view.connections);
    const { length } = view.connections;
    const some =
      length < view.total ? `the first ${grouped(length)} of ${grouped(view.total)}` : "";
    setText(element("connections-note"), some || `${grouped(view.total)} in total`);
  }

  async #disconnect(connection: Connection): Promise<void> {
    const mayReconnect = await ask({
      title: `Disconnect ${nameOf(connection)}?`,
      detail: `Connection ${connection.client}, ${channelsOf(connection) || "no channels"}.`,
      verb: "Disconnect",
      option: "Allow it to reconnect",
    });
    if (mayReconnect === undefined) {
      return;
    }
    const body = { client: connection.client, user: "", may_reconnect: mayReconnect };
    try {
      const { clients } = await this.#api.post<Done>("disconnect", body);
      this.#report(
        clients === 0
          ? "It was already disconnected."
          : `${nameOf(connection)} has been disconnected.`,
      );
      await this.refresh();
    } catch (error) {
      this.#report(`Cannot disconnect it: ${String(error)}`);
    }
  }
}

function nameOf({ user, client }: Connection): string {
  return user === "" ? client.slice(0, 13) : user;
}

function wayOf(protocol: string, transport: string): string {
  return protocol === transport ? protocol : `${protocol}, ${transport}`;
}

function ageOf({ connected_at_ms }: Connection): string {
  return humanDuration((Date.now() - connected_at_ms) / 1_000);
}

function lagText(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function channelsOf({ channels, subscriptions }: Connection): string {
  const more = subscriptions - Math.min(channels.length, 3);
  const names = channels.slice(0, 3).join(", ");
  return more > 0 ? `${names} and ${grouped(more)} more` : names;
}
