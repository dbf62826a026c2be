// Two nodes on one broker.

import { after, before, describe } from "node:test";
import { BROKERS, missing, startBroker } from "./brokers.mjs";

/**
 * Declares `tests` once for each broker. They get `nodes`, two servers that `start` starts with an
 * environment, and `startNode`, which starts a further one.
 */
export function onTwoNodes(start, tests) {
  for (const broker of BROKERS) {
    describe(broker.name, { skip: missing(broker) }, () => {
      const nodes = [];
      let started;
      const startNode = () => start({ LINERATE_BROKER_URL: started.url });
      before(async () => {
        started = await startBroker(broker);
        nodes.push(...(await Promise.all([startNode(), startNode()])));
        await Promise.all(nodes.map((node) => node.untilNodes(nodes.length)));
      });
      after(async () => {
        await Promise.all(nodes.map((node) => node.stop()));
        await started.stop();
      });
      tests({ nodes, startNode });
    });
  }
}
