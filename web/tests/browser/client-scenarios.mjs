// Scenarios for the client against the real server, the same in Node.js and in Chromium.
//
// Each scenario is a function of the module `linerate` and its environment. It must not use
// anything else in this file, because Chromium receives its source text. It returns JSON for the
// test to compare.

/** Publications arrive in order and unchanged, by callback, iteration and batch. */
export async function publications({ linerate, url, options, channel }) {
  const client = linerate.connect(url, options);
  const subscription = client.subscribe(channel);
  await new Promise((resolve) => subscription.on("subscribed", resolve));
  const called = [];
  const batched = [];
  subscription.on("publication", (publication) => called.push(publication.json()));
  subscription.on("batch", (batch) => batched.push(...batch.map((one) => one.json())));
  const iterated = [];
  const sent = [1, "zwei", { drei: [3, null, true], text: 'ä"\\\n€😀' }, [], null];
  const reading = (async () => {
    for await (const publication of subscription) {
      iterated.push(publication.json());
      if (iterated.length === sent.length) {
        return;
      }
    }
  })();
  for (const data of sent) {
    await client.publish(channel, data);
  }
  await reading;
  const { transport } = client;
  client.close();
  return { transport, sent, called, batched, iterated };
}

/** Bytes that are not text arrive unchanged, in blocks. */
export async function binary({ linerate, url, options, channel }) {
  const client = linerate.connect(url, options);
  const subscription = client.subscribe(channel);
  await new Promise((resolve) => subscription.on("subscribed", resolve));
  const arrived = subscription[Symbol.asyncIterator]().next();
  await client.publish(
    channel,
    Uint8Array.from({ length: 256 }, (_, i) => i),
  );
  const { value } = await arrived;
  const bytes = [...value.bytes()];
  client.close();
  return bytes;
}

/** Presence and history. */
export async function presenceAndHistory({ linerate, url, options, channel }) {
  const client = linerate.connect(url, options);
  const other = linerate.connect(url, options);
  const subscription = client.subscribe(channel, { joinLeave: true });
  await new Promise((resolve) => subscription.on("subscribed", resolve));
  const joined = new Promise((resolve) => {
    subscription.on("join", (info) => info.client !== client.id && resolve(info.client));
  });
  const left = new Promise((resolve) => subscription.on("leave", (info) => resolve(info.client)));
  const second = other.subscribe(channel);
  await new Promise((resolve) => second.on("subscribed", resolve));
  const otherId = other.id;
  const joins = (await joined) === otherId;
  const present = (await client.presence(channel)).map((info) => info.client).sort();
  const stats = await client.presenceStats(channel);
  second.unsubscribe();
  const leaves = (await left) === otherId;
  for (const n of [1, 2, 3]) {
    await client.publish(channel, { n });
  }
  const all = await client.history(channel);
  const newest = await client.history(channel, { limit: 1, reverse: true });
  const since = await client.history(channel, {
    since: { epoch: all.position.epoch, offset: all.publications[0].offset },
  });
  const expected = [client.id, otherId].sort();
  client.close();
  other.close();
  const values = (history) => history.publications.map((one) => one.json().n);
  return {
    joins,
    leaves,
    isPresent: JSON.stringify(present) === JSON.stringify(expected),
    stats,
    all: values(all),
    newest: values(newest),
    since: values(since),
  };
}

/** Filters and conflation happen in the server. */
export async function filterBatchConflate({ linerate, url, options, channel }) {
  const publisher = linerate.connect(url, options);
  const clients = [
    { filter: "n > 5 && key == 'a'" },
    { batchIntervalMs: 400 },
    { batchIntervalMs: 400, conflate: "latest" },
    { batchIntervalMs: 400, conflate: "/key" },
  ].map((subscribe) => {
    const client = linerate.connect(url, options);
    const subscription = client.subscribe(channel, subscribe);
    const batches = [];
    subscription.on("batch", (batch) => batches.push(batch.map((one) => one.json().n)));
    const subscribed = new Promise((resolve) => subscription.on("subscribed", resolve));
    return { client, batches, subscribed };
  });
  await Promise.all(clients.map(({ subscribed }) => subscribed));
  const published = [];
  for (let n = 1; n <= 10; n += 1) {
    published.push(publisher.publish(channel, { n, key: n % 2 === 0 ? "a" : "b" }));
  }
  await Promise.all(published);
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  const [filtered, batched, latest, latestOfKeys] = clients.map(({ client, batches }) => {
    client.close();
    return batches;
  });
  publisher.close();
  return { filtered: filtered.flat(), batched, latest, latestOfKeys };
}

/** An invalid filter is refused with the reason. */
export async function badFilter({ linerate, url, options, channel }) {
  const client = linerate.connect(url, options);
  const subscription = client.subscribe(channel, { filter: "n >" });
  const end = await new Promise((resolve) => subscription.on("unsubscribed", resolve));
  const { state } = client;
  client.close();
  return { ...end, state };
}

/** A lost connection while others publish causes no loss, duplicates or reordering. */
export async function recovery({ linerate, url, options, channel, cutNow }) {
  const publisher = linerate.connect(url, options);
  const client = linerate.connect(url, { reconnectFirstMs: 200, ...options, ...cutNow.options });
  const subscription = client.subscribe(channel);
  const seen = [];
  const gaps = [];
  const recovered = [];
  subscription.on("publication", (publication) => seen.push(publication.json()));
  subscription.on("gap", (gap) => gaps.push(gap));
  subscription.on("subscribed", (subscribed) => recovered.push(subscribed.recovered));
  await new Promise((resolve) => subscription.on("subscribed", resolve));
  for (let n = 1; n <= 90; n += 1) {
    await publisher.publish(channel, n);
    if (n === 20 || n === 50) {
      cutNow.cut();
    }
  }
  const deadline = performance.now() + 10_000;
  while (seen.at(-1) !== 90 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  client.close();
  publisher.close();
  return { seen, gaps, recovered };
}
