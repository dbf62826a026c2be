// Codes with which connections and subscriptions end.

/** The client ended the connection itself. */
export const DISCONNECT_CALLED = 0;
/** The server refused the connection or its token. */
export const UNAUTHORIZED = 1;
/** The connection was lost, or could not be opened. */
export const TRANSPORT_CLOSED = 2;
/** The server violated the protocol. */
export const BAD_PROTOCOL = 3;
/** There is no WebSocket to connect with. */
export const NO_WEBSOCKET = 4;
/** The server was silent for too long. */
export const NO_PING = 11;
/** The client ended the subscription itself. */
export const UNSUBSCRIBE_CALLED = 0;

/** The server has ended a subscription permanently. */
export const SERVER_UNSUBSCRIBE = 2_000;

/** Subscriptions that the server ended with such a code are subscribed again. */
const INSUFFICIENT_STATE = 2_500;

const TOKEN_EXPIRED = 109;
const UNRECOVERABLE_POSITION = 112;
const TOKEN_REVOKED = 113;
const PERMISSION_LAST = 3_999;

/** Returns whether a connection that was closed with `code` must not be opened again. */
export function isTerminal(code: number): boolean {
  return (code >= 3_500 && code <= PERMISSION_LAST) || (code >= 4_500 && code <= 4_999);
}

/**
 * Returns whether the client subscribes again after the server ended a subscription with `code`.
 */
export function subscribesAgain(code: number): boolean {
  return code >= INSUFFICIENT_STATE;
}

/** Returns whether the error of a reply means that a newer token is needed. */
export function wantsNewerToken(code: number): boolean {
  return code === TOKEN_EXPIRED || code === TOKEN_REVOKED;
}

/** Returns whether the error of a reply means that the requested position is no longer kept. */
export function isUnrecoverable(code: number): boolean {
  return code === UNRECOVERABLE_POSITION;
}
