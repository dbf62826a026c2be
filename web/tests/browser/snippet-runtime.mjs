// Loaded before code that was copied from the channel page: what browsers have, for Node.js.

import { createRequire } from "node:module";
import { WebSocket } from "ws";

const sdks = createRequire(new URL("../../../sdk-tests/package.json", import.meta.url));

globalThis.WebSocket ??= WebSocket;
globalThis.EventSource ??= sdks("eventsource").EventSource;
