// Runs the same tests over every transport, each file against its own server.

import { after, afterEach, before, describe, test } from "node:test";
import { startBackend } from "./backend.mjs";
import { missing, startBroker } from "./brokers.mjs";
import { Journal } from "./journal.mjs";
import { startProxy } from "./proxy.mjs";
import { startServer } from "./server.mjs";
import { connectionToken } from "./tokens.mjs";
import { TRANSPORTS } from "./transports.mjs";

const CLIENT_EVENTS = ["connecting", "connected", "disconnected", "error"];
const SUBSCRIPTION_EVENTS = [
  "subscribing",
  "subscribed",
  "unsubscribed",
  "publication",
  "join",
  "leave",
  "error",
];

/**
 * Declares `tests`, a map of names to functions that take a `Bench`, once for each transport.
 *
 * `environment` changes the configuration of the server.
 */
export function overEveryTransport(tests, environment) {
  declare(tests, async () => {
    const server = await startServer(environment);
    return { nodes: [server], stop: () => server.stop() };
  });
}

/**
 * Like the above, with a backend that the server asks: `answer` is as in `startBackend`, and `toml`
 * is added to the configuration, where `app` is the name of the backend.
 */
export function overEveryTransportWithBackend({ answer, environment, toml = "" }, tests) {
  declare(tests, async () => {
    const backend = await startBackend(answer);
    const added = `${toml}\n[[backend]]\nname = "app"\nurl = "${backend.url}"\n`;
    const server = await startServer(environment, added);
    const stop = async () => {
      await server.stop();
      await backend.stop();
    };
    return { nodes: [server], stop };
  });
}

/**
 * Like the first, but with two nodes on one broker: `bench.server` and `bench.other`.
 * `bench.startNode` starts a further one, which the test stops.
 */
export function overEveryTransportOnTwoNodes(broker, tests) {
  describe(broker.name, { skip: missing(broker) }, () => {
    declare(tests, async () => {
      const started = await startBroker(broker);
      const environment = { LINERATE_BROKER_URL: started.url };
      const startNode = () => startServer(environment);
      const nodes = await Promise.all([startNode(), startNode()]);
      await Promise.all(nodes.map((node) => node.untilNodes(nodes.length)));
      const stop = async () => {
        await Promise.all(nodes.map((node) => node.stop()));
        await started.stop();
      };
      return { nodes, startNode, stop };
    });
  });
}

/** Runs `run` behind a separate network, with a client that has `options`. */
export async function behindProxy(bench, run, options) {
  const proxy = await startProxy(bench.server.url);
  try {
    await run(proxy, await bench.connected({ url: proxy.url, ...options }));
  } finally {
    proxy.stop();
  }
}

/** Publishes more than sockets and rings can buffer. */
export async function flood(bench, channel) {
  const filler = "x".repeat(200_000);
  await bench.server.publish(channel, ...Array(120).fill(filler));
}

function declare(tests, start) {
  let started;
  before(async () => (started = await start()));
  after(() => started.stop());
  let channels = 0;
  for (const transport of TRANSPORTS) {
    describe(transport.name, () => {
      afterEach(() => transport.close());
      for (const [name, run] of Object.entries(tests)) {
        test(name, () => run(new Bench(started, transport, ++channels)));
      }
    });
  }
}

/** The environment of a test: one or two servers, a transport, and unique names. */
class Bench {
  constructor({ nodes: [server, other], startNode }, transport, number) {
    this.server = server;
    this.other = other;
    this.startNode = startNode;
    this.transport = transport;
    this.user = `user-${number}`;
    this.number = number;
  }

  /** Returns the name of a channel in `namespace`. */
  channel(namespace) {
    return `${namespace}:${this.number}`;
  }

  /** Returns a client of `user` that is not connected yet, and its journal. */
  client({ url = this.server.url, user = this.user, ...options } = {}) {
    const client = this.transport.client(url, { token: connectionToken(user), ...options });
    return { client, journal: new Journal(client, CLIENT_EVENTS) };
  }

  /** Returns a connected client. */
  async connected(options) {
    const { client, journal } = this.client(options);
    client.connect();
    await journal.next("connected");
    return { client, journal };
  }

  /** Returns a subscription that is not subscribed yet, and its journal. */
  subscription(client, channel, options) {
    const subscription = client.newSubscription(channel, options);
    return { subscription, journal: new Journal(subscription, SUBSCRIPTION_EVENTS) };
  }

  /** Returns an active subscription. */
  async subscribed(client, channel, options) {
    const { subscription, journal } = this.subscription(client, channel, options);
    subscription.subscribe();
    const context = await journal.next("subscribed");
    return { subscription, journal, context };
  }

  /** Returns the payloads of the next publications. */
  async payloads(journal, count) {
    const contexts = await journal.take("publication", count);
    return contexts.map(({ data }) => this.transport.decode(data));
  }
}
