// Finds a WebSocket where the runtime has none, as Node.js before version 22.

import type { Environment, WebSocketConstructor } from "./environment.js";

/** The npm packages that export a `WebSocket`, in the order in which they are tried. */
const PACKAGES = ["ws", "undici"];

/**
 * Returns the WebSocket of this runtime, or else of an installed package.
 *
 * Rejects if there is none: falling back to HTTP streaming would hide that payloads which are not
 * JSON cannot be received.
 */
export async function findWebSocket(environment: Environment): Promise<WebSocketConstructor> {
  if (environment.WebSocket !== undefined) {
    return environment.WebSocket;
  }
  for (const name of PACKAGES) {
    try {
      const { WebSocket } = await environment.importPackage(name);
      if (WebSocket !== undefined) {
        return WebSocket as WebSocketConstructor;
      }
    } catch (error) {
      if (!isMissing(error)) {
        throw new Error(`cannot import the package ${name}: ${String(error)}`);
      }
    }
  }
  throw new Error(
    "this runtime has no WebSocket; in Node.js before version 22, install the package ws, " +
      'or choose transports: ["http_stream"]',
  );
}

/** Returns whether an import failed because there is no such package, or no packages at all. */
function isMissing(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ERR_MODULE_NOT_FOUND" || error instanceof TypeError;
}
