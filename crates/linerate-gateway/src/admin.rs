//! What the admin page asks for, under `/admin/api/`.
//!
//! Each request carries the admin key, as `Authorization: Bearer KEY` or `X-Admin-Key: KEY`. Without a
//! configured key the page is there in development mode only, for peers on the same machine. Answers are
//! JSON, each a type of [`view`]; times are milliseconds since 1970, rates per second over the last two or
//! three seconds. What goes wrong is answered with a status and `{"error":{"code":…,"message":"…"}}`.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET overview` | [`view::Overview`]: this node, totals and rates; cheap, for polling each second |
//! | `GET nodes` | [`view::Nodes`]: all nodes that are known |
//! | `GET connections?sort=lag\|pending\|age&limit=50&user=&channel=&client=` | [`view::Connections`] |
//! | `GET channels?sort=rate\|bytes\|subscribers&limit=50&contains=` | [`view::Channels`] |
//! | `GET broker` | [`view::BrokerLink`]: the link, and its last changes and gaps |
//! | `GET tail?channel=…&rate=20` | a `text/event-stream`, see below |
//! | `POST disconnect` [`view::Disconnect`] | [`view::Done`] |
//! | `POST unsubscribe` [`view::Unsubscribe`] | [`view::Done`] |
//! | `POST publish` [`view::Publish`] | [`view::Done`] |
//! | `POST drain` `{}` | [`view::Done`]; the node is not ready from then on and sends its clients away |
//!
//! `disconnect` and `unsubscribe` reach all nodes. `connections` and `channels` are those of the node that
//! answers, which is why the page names it.
//!
//! The tail has three kinds of events: `publication` ([`view::TailPublication`]), at most `rate` a second (1 to
//! 100); `skipped` ([`view::TailSkipped`]) once a second if there were more; `gap` ([`view::TailGap`]). It
//! begins with the comment `: open`. `EventSource` sends no headers; the page reads it with `fetch`.

pub mod view;
