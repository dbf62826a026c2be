// What the server's errors mean for a channel, in plain words, with the setting to change.

import { ServerError, Unsubscribed } from "../client/src/linerate.js";

/** What was refused. */
export type Action = "subscribe" | "publish" | "history" | "presence";

const PERMISSION_DENIED = 103;
const NOT_AVAILABLE = 108;

const DENIED: Record<Action, string> = {
  subscribe:
    "Clients may not subscribe to this channel. Set allow_subscribe = true, and allow_anonymous = " +
    "true for clients without a token, or give the client a token for the channel",
  publish:
    "Clients may not publish in this channel. Set allow_publish = true, or publish as the " +
    "application",
  history: "Clients may not read the history of this channel. Set allow_history = true",
  presence: "Clients may not see who is present in this channel. Set allow_presence = true",
};

/** The settings that allow what subscribers wish, by what the server says if they forbid it. */
const OPTIONS: [said: string, setting: string][] = [
  ["filters are not allowed", "allow_filter"],
  ["batch intervals are not allowed", "allow_batch_override"],
  ["other conflation settings are not allowed", "allow_conflate_override"],
  ["patterns are not allowed", "allow_pattern"],
];

const LACKING: Partial<Record<Action, string>> = {
  history: "This channel keeps no history. Set history_size, for example to 100",
  presence: "Presence is not tracked in this channel. Set presence = true",
};

/**
 * Returns what `error` means. `namespaces` are the names of the configured namespaces, if they are
 * known.
 */
export function explain(
  action: Action,
  channel: string,
  error: unknown,
  namespaces?: readonly string[],
): string {
  if (!(error instanceof ServerError || error instanceof Unsubscribed)) {
    return error instanceof Error ? error.message : String(error);
  }
  const reason = error instanceof Unsubscribed ? error.reason : error.message;
  const where = placeOf(channel, namespaces);
  const said = `The server said: ${reason} (${error.code}).`;
  if (error.code === PERMISSION_DENIED && reason === "permission denied") {
    return `${DENIED[action]} ${where}. ${said}`;
  }
  const setting = OPTIONS.find(([text]) => reason.includes(text))?.[1];
  if (setting !== undefined) {
    return `${said} To allow it, set ${setting} = true ${where}.`;
  }
  if (error.code === NOT_AVAILABLE && LACKING[action] !== undefined) {
    return `${LACKING[action]} ${where}. ${said}`;
  }
  return said;
}

/** Returns the namespace that the name of a channel has, whether it is configured or not. */
export function namespaceOf(channel: string): string | undefined {
  const colon = channel.indexOf(":");
  return colon > 0 ? channel.slice(0, colon) : undefined;
}

/** Returns in which section of the configuration the options of a channel are. */
export function placeOf(channel: string, namespaces?: readonly string[]): string {
  const namespace = namespaceOf(channel);
  if (namespace === undefined) {
    return "in [channel]";
  }
  const name = JSON.stringify(namespace);
  if (namespaces === undefined) {
    return `in the [[namespace]] ${name} if there is one, and otherwise in [channel]`;
  }
  return namespaces.includes(namespace)
    ? `in the [[namespace]] ${name}`
    : `in [channel], because there is no [[namespace]] ${name}`;
}
