// What can go wrong, as the errors that promises of this package reject with.

/** The server refused a command. */
export class ServerError extends Error {
  override readonly name = "ServerError";

  constructor(
    /** The number of the error, 100 to 113 (docs/gateway/protocols.md). */
    readonly code: number,
    message: string,
    /** Whether the same command may succeed later. */
    readonly temporary: boolean = false,
  ) {
    super(message);
  }
}

/** No connection, or it ended before the answer came: whether the command took effect is unknown. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** No answer within `requestTimeoutMs`. */
export class TimedOut extends Error {
  override readonly name = "TimedOut";
}

/** The server sent what the protocol doesn't allow. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** The server ended a subscription for good; iterating over it rejects with this. */
export class Unsubscribed extends Error {
  override readonly name = "Unsubscribed";

  constructor(
    readonly code: number,
    readonly reason: string,
  ) {
    super(`unsubscribed: ${reason} (${code})`);
  }
}

/** A token callback throws this if there is no token to be had: no retry then. */
export class Unauthorized extends Error {
  override readonly name = "Unauthorized";
}

/** Returns `thrown` as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
