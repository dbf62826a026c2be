// Creates tokens like an application's backend.

import { createHmac } from "node:crypto";

/** As in the configuration. */
const SECRET = "the secret of the sdk tests";

/** Returns a token of `user` for a connection, valid for the given number of seconds. */
export function connectionToken(user, { seconds = 600, ...claims } = {}) {
  return token({ sub: user, exp: now() + seconds, ...claims });
}

/** Returns a token of `user` for a subscription, valid for the given number of seconds. */
export function subscriptionToken(user, channel, { seconds = 600, ...claims } = {}) {
  return token({ sub: user, channel, exp: now() + seconds, ...claims });
}

function token(claims) {
  const head = `${encoded({ alg: "HS256", typ: "JWT" })}.${encoded(claims)}`;
  const signature = createHmac("sha256", SECRET).update(head).digest("base64url");
  return `${head}.${signature}`;
}

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

const now = () => Math.floor(Date.now() / 1000);
