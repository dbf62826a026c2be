// The connection to the server: opened, kept alive, and reopened when it is lost.

import { type Backoff, retryDelayMs } from "./backoff.js";
import * as codes from "./codes.js";
import type { Endpoints } from "./endpoints.js";
import type { Environment, WebSocketConstructor } from "./environment.js";
import { asError, ConnectionLost, ServerError, TimedOut, Unauthorized } from "./errors.js";
import { findWebSocket } from "./find-websocket.js";
import { HttpStreamLink } from "./http-stream-link.js";
import type { Link, LinkEvents, Transport } from "./link.js";
import type {
  Commands,
  ConnectRequest,
  ConnectResult,
  PublicationMessage,
  Push,
  RecoverRequest,
  Reply,
} from "./messages.js";
import { Requests, type Settle } from "./requests.js";
import { refreshDelayMs, tokenFrom, type TokenSource } from "./token.js";
import { TransportChoice } from "./transports.js";
import { WebSocketLink } from "./websocket-link.js";

/** After a connection has been open for this long, the delay starts from the shortest again. */
const SETTLED_MS = 5_000;

export type ConnectionState = "disconnected" | "connecting" | "connected";

export interface ConnectionOptions {
  transports: readonly Transport[];
  token: TokenSource | undefined;
  name: string;
  data: unknown;
  backoff: Backoff;
  connectTimeoutMs: number;
  requestTimeoutMs: number;
  pingGraceMs: number;
}

export interface ConnectionEvents {
  /** Returns the positions from which to recover the subscriptions that the server has made. */
  recoveries(): Record<string, RecoverRequest>;
  /** A connection is being opened, or will be opened in `retryInMs`. */
  connecting(code: number, reason: string, retryInMs: number): void;
  connected(result: ConnectResult, transport: Transport): void;
  /** The connection has ended and won't be opened again. */
  disconnected(code: number, reason: string): void;
  push(push: Push): void;
  /** Publications of one channel that arrived together, outside of blocks. */
  publications(channel: string, messages: PublicationMessage[]): void;
  blocks(bytes: Uint8Array): void;
  /** Something went wrong that is being retried. */
  error(error: Error): void;
}

export class Connection {
  readonly #endpoints: Endpoints;
  readonly #options: ConnectionOptions;
  readonly #environment: Environment;
  readonly #events: ConnectionEvents;
  readonly #transports: TransportChoice;
  /** `undefined` until one is needed and found. */
  #webSocket: WebSocketConstructor | undefined;
  #state: ConnectionState = "disconnected";
  /** Counts attempts, so that late events of an earlier attempt are recognised. */
  #attempt = 0;
  #retries = 0;
  #link: Link | undefined;
  #requests: Requests;
  #openedAtMs = Infinity;
  #heardAtMs = 0;
  #answersPings = false;
  /** Functions that cancel the timers of the current attempt or wait. */
  readonly #timers = new Set<() => void>();

  constructor(
    endpoints: Endpoints,
    options: ConnectionOptions,
    environment: Environment,
    events: ConnectionEvents,
  ) {
    this.#endpoints = endpoints;
    this.#options = options;
    this.#environment = environment;
    this.#events = events;
    this.#webSocket = environment.WebSocket;
    this.#transports = new TransportChoice(options.transports);
    this.#requests = new Requests(environment, options.requestTimeoutMs);
  }

  /** Connects at once, without waiting. */
  start(): void {
    if (this.#state === "disconnected") {
      this.#retries = 0;
    }
    if (this.#state !== "connected" && this.#link === undefined) {
      this.#events.connecting(codes.DISCONNECT_CALLED, "connect called", 0);
      this.#connect();
    }
  }

  /** Ends the connection permanently. */
  stop(code: number, reason: string): void {
    if (this.#state !== "disconnected") {
      this.#tearDown(reason);
      this.#state = "disconnected";
      this.#events.disconnected(code, reason);
    }
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** The transport of the connection, or of the attempt to open one. */
  get transport(): Transport {
    return this.#transports.current;
  }

  /** Sends a command; `settle` gets its reply, or a `ConnectionLost`. */
  send<Method extends keyof Commands>(
    method: Method,
    request: Commands[Method][0],
    settle: Settle<Commands[Method][1]>,
  ): void {
    if (this.#state !== "connected" || this.#link === undefined) {
      settle.reject(new ConnectionLost("not connected"));
    } else {
      this.#link.send(this.#requests.start(method, request, settle));
    }
  }

  /** Sends a message that has no answer, if there is a connection. */
  tell(message: object): void {
    if (this.#state === "connected") {
      this.#link?.send(JSON.stringify(message));
    }
  }

  /** Ends the link and opens another one. */
  restart(code: number, reason: string): void {
    this.#handleLost(code, reason);
  }

  #connect(): void {
    this.#cancelTimers();
    this.#state = "connecting";
    this.#attempt += 1;
    const attempt = this.#attempt;
    const { token } = this.#options;
    if (token === undefined) {
      this.#open(undefined);
      return;
    }
    tokenFrom(token, undefined).then(
      (fresh) => attempt === this.#attempt && this.#open(fresh),
      (error: unknown) => attempt === this.#attempt && this.#handleNoToken(asError(error)),
    );
  }

  #handleNoToken(error: Error): void {
    if (error instanceof Unauthorized) {
      this.stop(codes.UNAUTHORIZED, error.message);
      return;
    }
    this.#events.error(error);
    this.#retryLater(codes.TRANSPORT_CLOSED, "no token to connect with");
  }

  #open(token: string | undefined): void {
    const { connectTimeoutMs } = this.#options;
    this.#after(connectTimeoutMs, () =>
      this.#handleLost(codes.TRANSPORT_CLOSED, `no connection within ${connectTimeoutMs} ms`),
    );
    const events = this.#linkEvents(token);
    if (this.#transports.current === "http_stream") {
      this.#link = new HttpStreamLink(this.#endpoints, this.#environment, events);
    } else if (this.#webSocket !== undefined) {
      this.#openWebSocket(this.#webSocket, events);
    } else {
      this.#findWebSocket(events);
    }
  }

  #findWebSocket(events: LinkEvents): void {
    const attempt = this.#attempt;
    findWebSocket(this.#environment).then(
      (found) => {
        this.#webSocket = found;
        if (attempt === this.#attempt) {
          this.#openWebSocket(found, events);
        }
      },
      (error: unknown) =>
        attempt === this.#attempt && this.stop(codes.NO_WEBSOCKET, asError(error).message),
    );
  }

  #openWebSocket(WebSocket: WebSocketConstructor, events: LinkEvents): void {
    const attempt = this.#attempt;
    try {
      this.#link = new WebSocketLink(this.#endpoints, WebSocket, events);
    } catch (error) {
      // Reported after the constructor has returned, like all other events of a link.
      queueMicrotask(() => {
        if (attempt === this.#attempt) {
          this.#handleLost(codes.TRANSPORT_CLOSED, asError(error).message);
        }
      });
    }
  }

  #linkEvents(token: string | undefined): LinkEvents {
    return {
      opened: () => this.#introduce(token),
      messages: (replies) => this.#receive(replies),
      blocks: (bytes) => {
        this.#heardAtMs = this.#environment.now();
        this.#events.blocks(bytes);
      },
      closed: (code, reason) => this.#handleLost(code, reason),
    };
  }

  #introduce(token: string | undefined): void {
    const { name, data } = this.#options;
    const request: ConnectRequest = { name };
    const subs = this.#events.recoveries();
    if (Object.keys(subs).length > 0) {
      request.subs = subs;
    }
    if (token !== undefined) {
      request.token = token;
    }
    if (data !== undefined) {
      request.data = data;
    }
    const text = this.#requests.start("connect", request, {
      resolve: (result) => this.#handleWelcome(result),
      reject: (error) => this.#handleRefusal(error),
    });
    this.#link?.send(text);
  }

  #handleWelcome(result: ConnectResult): void {
    this.#cancelTimers();
    this.#transports.handleSuccess();
    this.#state = "connected";
    this.#openedAtMs = this.#environment.now();
    this.#heardAtMs = this.#openedAtMs;
    this.#answersPings = result.pong === true;
    if ((result.ping ?? 0) > 0) {
      this.#watchPings((result.ping ?? 0) * 1_000 + this.#options.pingGraceMs);
    }
    this.#scheduleRefresh(result.expires, result.ttl);
    this.#events.connected(result, this.#transports.current);
  }

  #handleRefusal(error: Error): void {
    if (error instanceof ConnectionLost || this.#link === undefined) {
      return; // The code that lost the connection handles this.
    }
    if (error instanceof TimedOut) {
      this.#handleLost(codes.TRANSPORT_CLOSED, error.message);
      return;
    }
    this.#transports.handleSuccess();
    const code = error instanceof ServerError ? error.code : codes.BAD_PROTOCOL;
    const isRenewable = codes.wantsNewerToken(code) && typeof this.#options.token === "function";
    if (isRenewable || (error instanceof ServerError && error.temporary)) {
      this.#events.error(error);
      this.#handleLost(codes.TRANSPORT_CLOSED, error.message);
    } else {
      this.stop(code, error.message);
    }
  }

  #receive(replies: Reply[]): void {
    this.#heardAtMs = this.#environment.now();
    const attempt = this.#attempt;
    for (let at = 0; at < replies.length && attempt === this.#attempt;) {
      const run = runOfPublications(replies, at);
      const { channel } = replies[at]?.push ?? {};
      if (run.length > 0 && channel !== undefined) {
        this.#events.publications(channel, run);
        at += run.length;
      } else {
        this.#handle(replies[at] as Reply);
        at += 1;
      }
    }
  }

  #handle(reply: Reply): void {
    if (reply.id !== undefined && reply.id !== 0) {
      this.#requests.settle(reply.id, reply);
    } else if (reply.push?.disconnect !== undefined) {
      const { code, reason } = reply.push.disconnect;
      this.#handleLost(code, reason);
    } else if (reply.push !== undefined) {
      this.#events.push(reply.push);
    } else if (this.#answersPings) {
      this.#link?.send("{}");
    }
  }

  /** Ends the link after `silenceMs` without a message. */
  #watchPings(silenceMs: number): void {
    const leftMs = this.#heardAtMs + silenceMs - this.#environment.now();
    this.#after(leftMs, () => {
      if (this.#environment.now() - this.#heardAtMs >= silenceMs) {
        this.#handleLost(codes.NO_PING, "no ping");
      } else {
        this.#watchPings(silenceMs);
      }
    });
  }

  #scheduleRefresh(expires: boolean | undefined, ttlSeconds: number | undefined): void {
    const { token } = this.#options;
    if (expires === true && typeof token === "function") {
      this.#after(refreshDelayMs(ttlSeconds ?? 0), () => this.#refresh(token, 0));
    }
  }

  #refresh(source: TokenSource, retries: number): void {
    const attempt = this.#attempt;
    const handleError = (error: Error) => this.#handleRefreshError(source, retries, error);
    tokenFrom(source, undefined).then(
      (token) => {
        if (attempt === this.#attempt) {
          const resolve = (result: Commands["refresh"][1]) =>
            this.#scheduleRefresh(result.expires, result.ttl);
          this.send("refresh", { token }, { resolve, reject: handleError });
        }
      },
      (error: unknown) => attempt === this.#attempt && handleError(asError(error)),
    );
  }

  #handleRefreshError(source: TokenSource, retries: number, error: Error): void {
    if (error instanceof ConnectionLost) {
      return;
    }
    if (error instanceof Unauthorized) {
      this.stop(codes.UNAUTHORIZED, error.message);
    } else if (
      error instanceof ServerError &&
      !error.temporary &&
      !codes.wantsNewerToken(error.code)
    ) {
      this.stop(error.code, error.message);
    } else {
      this.#events.error(error);
      this.#after(this.#delayMs(retries), () => this.#refresh(source, retries + 1));
    }
  }

  #handleLost(code: number, reason: string): void {
    if (this.#state === "disconnected") {
      return;
    }
    const wasConnected = this.#state === "connected";
    const openMs = this.#environment.now() - this.#openedAtMs;
    this.#tearDown(reason);
    if (codes.isTerminal(code)) {
      this.#state = "disconnected";
      this.#events.disconnected(code, reason);
      return;
    }
    if (wasConnected && openMs >= SETTLED_MS) {
      this.#retries = 0;
    }
    const tryNextNow = !wasConnected && this.#transports.handleFailure();
    if (tryNextNow) {
      this.#connect();
    } else {
      this.#retryLater(code, reason);
    }
  }

  #retryLater(code: number, reason: string): void {
    this.#state = "connecting";
    const delayMs = this.#delayMs(this.#retries);
    this.#retries += 1;
    this.#after(delayMs, () => this.#connect());
    this.#events.connecting(code, reason, delayMs);
  }

  #delayMs(retries: number): number {
    return retryDelayMs(this.#options.backoff, retries, this.#environment.random);
  }

  #tearDown(reason: string): void {
    this.#attempt += 1;
    this.#cancelTimers();
    this.#link?.close();
    this.#link = undefined;
    this.#openedAtMs = Infinity;
    this.#state = "connecting";
    this.#requests.failAll(new ConnectionLost(reason));
  }

  #after(delayMs: number, callback: () => void): void {
    const cancel = this.#environment.after(delayMs, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
  }

  #cancelTimers(): void {
    for (const cancel of this.#timers) {
      cancel();
    }
    this.#timers.clear();
  }
}

/** Returns the consecutive publications from `replies[start]` on that belong to one channel. */
function runOfPublications(replies: Reply[], start: number): PublicationMessage[] {
  const run: PublicationMessage[] = [];
  const channel = replies[start]?.push?.channel;
  for (let at = start; at < replies.length; at += 1) {
    const { pub, channel: itsChannel } = replies[at]?.push ?? {};
    if (pub === undefined || itsChannel !== channel) {
      break;
    }
    run.push(pub);
  }
  return run;
}
