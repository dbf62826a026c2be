// The addresses of the transports on a server.

const WEBSOCKET_PATH = "/connection/websocket";

/** The addresses of one server. */
export interface Endpoints {
  websocket: string;
  httpStream: string;
  emulation: string;
}

/**
 * Returns the addresses for `url`: a server (`https://example.org`), a server with a prefix
 * (`https://example.org/realtime`), or its WebSocket endpoint itself. In a page it may be relative.
 *
 * Throws a `TypeError` if it is none of these.
 */
export function endpointsOf(url: string, base: string | undefined): Endpoints {
  const parsed = new URL(url, base);
  const secure = { "https:": true, "wss:": true, "http:": false, "ws:": false }[parsed.protocol];
  if (secure === undefined) {
    throw new TypeError(
      `unsupported protocol ${parsed.protocol} in the server's URL; use https, wss, http or ws`,
    );
  }
  const path = parsed.pathname.replace(/\/+$/, "");
  const prefix = path.endsWith(WEBSOCKET_PATH) ? path.slice(0, -WEBSOCKET_PATH.length) : path;
  const s = secure ? "s" : "";
  const rest = `${parsed.host}${prefix}`;
  return {
    websocket: `ws${s}://${rest}${WEBSOCKET_PATH}${parsed.search}`,
    httpStream: `http${s}://${rest}/connection/http_stream`,
    emulation: `http${s}://${rest}/emulation`,
  };
}
