// The errors with which promises of this package reject.

/** The server refused a command. */
export class ServerError extends Error {
  override readonly name = "ServerError";

  constructor(
    /** The code of the error, 100 to 113 (docs/gateway/protocols.md). */
    readonly code: number,
    message: string,
    /** True if the same command may succeed later. */
    readonly temporary: boolean = false,
  ) {
    super(message);
  }
}

/** No connection, or it ended before the answer arrived: the command may or may not have run. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** No answer within `requestTimeoutMs`. */
export class TimedOut extends Error {
  override readonly name = "TimedOut";
}

/** The server violated the protocol. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** The server ended a subscription permanently; iterating over it rejects with this error. */
export class Unsubscribed extends Error {
  override readonly name = "Unsubscribed";

  constructor(
    readonly code: number,
    readonly reason: string,
  ) {
    super(`unsubscribed: ${reason} (${code})`);
  }
}

/** A token callback throws this if it cannot get a token; the client does not retry. */
export class Unauthorized extends Error {
  override readonly name = "Unauthorized";
}

/** Returns `thrown`, wrapped in an `Error` if it is not one. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
