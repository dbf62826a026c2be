// The transports of the npm package.

import { Centrifuge } from "centrifuge";
import { Centrifuge as CentrifugeProtobuf } from "centrifuge/build/protobuf";
import { EventSource } from "eventsource";
import WebSocket from "ws";

const text = new TextDecoder();
const bytes = new TextEncoder();

/** JSON: payloads are values. */
const json = { Client: Centrifuge, encode: (value) => value, decode: (data) => data };

/** Protobuf: payloads are bytes; these tests put JSON into them. */
const protobuf = {
  Client: CentrifugeProtobuf,
  encode: (value) => bytes.encode(JSON.stringify(value)),
  decode: (data) => JSON.parse(text.decode(data)),
};

const websocket = (url) => `${url.replace("http", "ws")}/connection/websocket`;
const httpStream = (url) => [
  { transport: "http_stream", endpoint: `${url}/connection/http_stream` },
];
const sse = (url) => [{ transport: "sse", endpoint: `${url}/connection/sse` }];

class Transport {
  #endpoint;
  #Client;
  #open = new Set();

  constructor(name, endpoint, { Client, encode, decode }) {
    this.name = name;
    this.#endpoint = endpoint;
    this.#Client = Client;
    /** Converts values to the argument of `publish`, and payloads of publications to values. */
    this.encode = encode;
    this.decode = decode;
  }

  /** Returns a client for the server at `url` that is not connected yet. */
  client(url, options) {
    const client = new this.#Client(this.#endpoint(url), {
      websocket: WebSocket,
      eventsource: EventSource,
      fetch,
      readableStream: ReadableStream,
      emulationEndpoint: `${url}/emulation`,
      minReconnectDelay: 50,
      maxReconnectDelay: 200,
      ...options,
    });
    // Without a listener the client would throw errors that tests provoke deliberately.
    client.on("error", () => {});
    this.#open.add(client);
    return client;
  }

  /** Disconnects all clients. */
  close() {
    this.#open.forEach((client) => client.disconnect());
    this.#open.clear();
  }
}

export const TRANSPORTS = [
  new Transport("WebSocket, JSON", websocket, json),
  new Transport("WebSocket, Protobuf", websocket, protobuf),
  new Transport("HTTP stream, JSON", httpStream, json),
  new Transport("HTTP stream, Protobuf", httpStream, protobuf),
  new Transport("SSE", sse, json),
];
