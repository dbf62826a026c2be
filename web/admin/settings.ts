// The configuration of the node: what is set, and what differs from the defaults.

import { grouped } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import type { AdminApi } from "../shared/admin-api.js";
import { Table } from "./table.js";
import type { Setting, Settings } from "./views.js";

export class SettingsPanel {
  readonly #api: AdminApi;
  readonly #contains = element("settings-contains") as HTMLInputElement;
  readonly #onlyChanged = element("settings-changed") as HTMLInputElement;
  readonly #table: Table<Setting>;
  #settings: Setting[] = [];

  constructor(api: AdminApi) {
    this.#api = api;
    this.#table = new Table<Setting>(
      element("settings"),
      [
        { name: "name key", text: ({ key }) => key, title: ({ key }) => key },
        { name: "value", text: valueOf, title: valueOf },
        { name: "value minor", text: (setting) => legible(setting.default ?? "") },
        {
          name: "state",
          text: ({ is_changed }) => (is_changed ? "changed" : ""),
          title: ({ source }) => source,
        },
        { name: "minor", text: ({ source }) => source, title: ({ source }) => source },
      ],
      "No setting matches.",
    );
    this.#contains.addEventListener("input", () => this.#show());
    this.#onlyChanged.addEventListener("change", () => this.#show());
  }

  async refresh(): Promise<void> {
    this.#settings = (await this.#api.get<Settings>("settings")).settings;
    this.#show();
  }

  #show(): void {
    const contains = this.#contains.value.trim().toLowerCase();
    const rows = this.#settings.filter(
      ({ key, is_changed }) =>
        key.toLowerCase().includes(contains) && (is_changed || !this.#onlyChanged.checked),
    );
    this.#table.show(rows);
    const changed = this.#settings.filter(({ is_changed }) => is_changed).length;
    const count = grouped(this.#settings.length);
    setText(element("settings-note"), `${grouped(changed)} of ${count} differ from the default`);
  }
}

function valueOf({ value, resolved }: Setting): string {
  return resolved === null ? legible(value) : `${legible(value)} (${legible(resolved)} in force)`;
}

/** Groups the digits of a number as in configuration files. */
function legible(value: string): string {
  return /^\d{5,}$/.test(value) ? value.replaceAll(/\B(?=(\d{3})+$)/g, "_") : value;
}
