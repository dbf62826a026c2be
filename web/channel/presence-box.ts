// Who is in the channel, and who joins and leaves.

import type { ClientInfo } from "../client/src/linerate.js";
import { counted, grouped, utcClock } from "../shared/format.js";
import { create, element, oncePerFrame, setFigure, setText } from "../shared/page.js";
import type { Feed } from "./feed.js";
import { preview } from "./payload.js";

/** Number of clients shown. */
const CLIENTS_MAX = 50;
/** Number of joins and leaves shown. */
const EVENTS_MAX = 8;
/** The list is requested again this long after a join or a leave: many are asked for together. */
const REFRESH_MS = 1_000;

interface Change {
  verb: "joined" | "left";
  info: ClientInfo;
  atMs: number;
}

export class PresenceBox {
  readonly #feed: Feed;
  readonly #channel: string;
  readonly #explain: (error: unknown) => string;
  readonly #state = element("presence-state");
  readonly #trouble = element("presence-trouble");
  readonly #rows = element("presence-rows");
  readonly #events = element("presence-events");
  readonly #drawEvents = oncePerFrame(() => this.#showEvents());
  #changes: Change[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `explain` returns what an error means. */
  constructor(feed: Feed, channel: string, explain: (error: unknown) => string) {
    this.#feed = feed;
    this.#channel = channel;
    this.#explain = explain;
    element("presence-refresh").addEventListener("click", () => void this.load());
  }

  /** Shows that a client joined or left. */
  add(verb: "joined" | "left", info: ClientInfo): void {
    this.#changes = [{ verb, info, atMs: Date.now() }, ...this.#changes].slice(0, EVENTS_MAX);
    this.#drawEvents();
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.load();
    }, REFRESH_MS);
  }

  async load(): Promise<void> {
    try {
      const clients = await this.#feed.client.presence(this.#channel);
      const users = new Set(clients.map(userOf)).size;
      const rows = [...clients]
        .sort((a, b) => userOf(a).localeCompare(userOf(b)))
        .slice(0, CLIENTS_MAX)
        .map((info) => rowOf(info, this.#feed.isOwn(info.client)));
      this.#rows.replaceChildren(...rows);
      const missing = clients.length - rows.length;
      const more = missing > 0 ? `; ${grouped(missing)} not shown` : "";
      const text = `${counted(clients.length, "client")}, ${counted(users, "user")}${more}`;
      setFigure(this.#state, text, clients.length);
      setText(this.#trouble, "");
    } catch (error) {
      this.#rows.replaceChildren();
      setText(this.#state, "");
      setText(this.#trouble, this.#explain(error));
    }
  }

  #showEvents(): void {
    const rows = this.#changes.map(({ verb, info, atMs }) => {
      const row = create("li", "change");
      row.append(
        create("span", "note change-time", utcClock(atMs / 1_000, true)),
        create("span", "", `${nameOf(info)} ${verb}`),
      );
      return row;
    });
    this.#events.replaceChildren(...rows);
  }
}

function rowOf(info: ClientInfo, isOwn: boolean): HTMLElement {
  const row = create("li", "member");
  row.append(create("span", "member-name", nameOf(info)));
  if (isOwn) {
    row.append(create("span", "mark", "this page"));
  }
  row.append(create("span", "member-client", preview(info.client, 40)));
  for (const more of [info.conn_info, info.chan_info]) {
    if (more !== undefined) {
      row.append(create("span", "member-info", preview(JSON.stringify(more), 120)));
    }
  }
  return row;
}

function nameOf(info: ClientInfo): string {
  return userOf(info) === "" ? "anonymous" : preview(userOf(info), 60);
}

/** Returns the user of a client. The server leaves out the user of an anonymous one. */
function userOf({ user }: Partial<ClientInfo>): string {
  return user ?? "";
}
