// The channels with the most traffic or subscribers.

import { compact, grouped, humanBytes } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import type { AdminApi } from "../shared/admin-api.js";
import { Table } from "./table.js";
import type { Channel, Channels } from "./views.js";

const LIMIT = 50;

export class ChannelsPanel {
  readonly #api: AdminApi;
  readonly #sort = element("channels-sort") as HTMLSelectElement;
  readonly #contains = element("channels-contains") as HTMLInputElement;
  readonly #table: Table<Channel>;

  /** `follow` is called when the user chooses to watch the publications of a channel. */
  constructor(api: AdminApi, follow: (channel: string) => void) {
    this.#api = api;
    this.#table = new Table<Channel>(
      element("channels-rows"),
      [
        {
          name: "name",
          text: ({ channel }) => channel,
          title: ({ channel }) => channel,
          href: ({ channel }) => `/channel?name=${encodeURIComponent(channel)}`,
        },
        { name: "number", text: ({ subscribers }) => grouped(subscribers) },
        { name: "number", text: (row) => row.publications_per_s.toFixed(1) },
        { name: "number minor", text: (row) => humanBytes(row.bytes_per_s) },
        { name: "number minor", text: ({ publications }) => compact(publications) },
      ],
      "No channel has subscribers.",
      {
        label: "Tail",
        describe: ({ channel }) => `Show what is published in ${channel}`,
        act: ({ channel }) => follow(channel),
      },
    );
    for (const control of [this.#sort, this.#contains]) {
      control.addEventListener("change", () => void this.refresh().catch(() => {}));
    }
  }

  async refresh(): Promise<void> {
    const query = new URLSearchParams({ sort: this.#sort.value, limit: String(LIMIT) });
    const contains = this.#contains.value.trim();
    if (contains !== "") {
      query.set("contains", contains);
    }
    const view = await this.#api.get<Channels>(`channels?${query}`);
    this.#table.show(view.channels);
    const { length } = view.channels;
    const some =
      length < view.total ? `the first ${grouped(length)} of ${grouped(view.total)}` : "";
    setText(element("channels-note"), some || `${grouped(view.total)} in total`);
  }
}
