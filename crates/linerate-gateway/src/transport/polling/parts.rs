//! The body of a request, in parts that are not longer than a message may be.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::protocol::polling::{BodyLimit, PollingRefusal};

/// How many times as long as a message a body may be if clients know no limit on bodies.
const MESSAGES_MAX: usize = 16;

/// The body of a request. Each part has complete messages.
#[derive(Debug)]
pub(super) struct Parts {
    /// `None` once all of it has been read.
    body: Option<Body>,
    limit: BodyLimit,
    /// The maximum length of a message, in bytes.
    bytes_max: usize,
    /// What has been read, and is in no part.
    buffer: BytesMut,
    /// The number of bytes that have been read.
    read_bytes: usize,
    /// True once there has been a part. A body without bytes is one.
    has_begun: bool,
}

impl Parts {
    pub(super) fn new(body: Body, limit: BodyLimit, bytes_max: usize) -> Self {
        Self {
            body: Some(body),
            limit,
            bytes_max,
            buffer: BytesMut::new(),
            read_bytes: 0,
            has_begun: false,
        }
    }

    /// Returns the next part; `None` after the last one.
    ///
    /// # Errors
    /// The body or a message is too long, or the body does not arrive.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, PollingRefusal> {
        while self.buffer.len() <= self.bytes_max {
            if !self.read().await? {
                break;
            }
        }
        let is_last = self.buffer.len() <= self.bytes_max;
        let part = match is_last {
            true if self.buffer.is_empty() && self.has_begun => return Ok(None),
            true => self.buffer.split(),
            false => self.split_off_messages()?,
        };
        self.has_begun = true;
        Ok(Some(part.freeze()))
    }

    /// Reads more of the body. Returns `false` at its end.
    async fn read(&mut self) -> Result<bool, PollingRefusal> {
        let Some(body) = &mut self.body else {
            return Ok(false);
        };
        let Some(frame) = body.frame().await else {
            self.body = None;
            return Ok(false);
        };
        let frame = frame.map_err(|_| PollingRefusal::BadRequest)?;
        let Ok(data) = frame.into_data() else {
            return Ok(true);
        };
        let bytes_max = match self.limit {
            BodyLimit::Body => self.bytes_max,
            BodyLimit::Message { .. } => self.bytes_max.saturating_mul(MESSAGES_MAX),
        };
        self.read_bytes = self.read_bytes.saturating_add(data.len());
        if self.read_bytes > bytes_max {
            return Err(PollingRefusal::TooLarge { bytes_max });
        }
        self.buffer.extend_from_slice(&data);
        Ok(true)
    }

    /// Takes the messages that are complete and fit into a part. There is more than a part.
    fn split_off_messages(&mut self) -> Result<BytesMut, PollingRefusal> {
        let bytes_max = self.bytes_max;
        let BodyLimit::Message { separator } = self.limit else {
            return Err(PollingRefusal::TooLarge { bytes_max });
        };
        let head = &self.buffer[..=bytes_max];
        let end = head.iter().rposition(|&byte| byte == separator);
        let end = end.ok_or(PollingRefusal::TooLong { bytes_max })?;
        let part = self.buffer.split_to(end);
        bytes::Buf::advance(&mut self.buffer, 1);
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use bytes::Bytes;
    use futures_util::stream;

    use super::Parts;
    use crate::protocol::polling::{BodyLimit, PollingRefusal};

    const LINES: BodyLimit = BodyLimit::Message { separator: b'\n' };

    /// Returns the parts of a body that arrives in these pieces, or why it is refused.
    async fn parts(
        pieces: &[&'static str],
        limit: BodyLimit,
        bytes_max: usize,
    ) -> (Vec<Bytes>, Option<PollingRefusal>) {
        let pieces: Vec<_> = pieces
            .iter()
            .copied()
            .map(Ok::<_, std::io::Error>)
            .collect();
        let body = Body::from_stream(stream::iter(pieces));
        let mut parts = Parts::new(body, limit, bytes_max);
        let mut found = Vec::new();
        loop {
            match parts.next().await {
                Ok(Some(part)) => found.push(part),
                Ok(None) => return (found, None),
                Err(refusal) => return (found, Some(refusal)),
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_is_not_longer_than_a_message_is_one_part() {
        for limit in [BodyLimit::Body, LINES] {
            for (pieces, whole) in [
                (&[][..], ""),
                (&["abcd"], "abcd"),
                (&["a", "", "b\n", "d"], "ab\nd"),
            ] {
                let expected = (vec![Bytes::from(whole)], None);
                assert_eq!(parts(pieces, limit, 4).await, expected, "{pieces:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_longer_body_is_cut_between_messages_however_it_arrives() {
        let body = "a\nbb\nccc\ndddd\ne";
        let expected: Vec<Bytes> = ["a\nbb", "ccc", "dddd", "e"].map(Bytes::from).into();
        let bytes: Vec<_> = (0..body.len()).map(|at| &body[at..=at]).collect();
        for at in 0..body.len() {
            let (before, after) = body.split_at(at);
            assert_eq!(
                parts(&[before, after], LINES, 4).await,
                (expected.clone(), None)
            );
        }
        assert_eq!(parts(&bytes, LINES, 4).await, (expected, None));
    }

    #[tokio::test]
    async fn what_is_too_long_is_refused_with_the_limit() {
        let refused = parts(&["abcde"], BodyLimit::Body, 4).await;
        assert_eq!(
            refused,
            (vec![], Some(PollingRefusal::TooLarge { bytes_max: 4 }))
        );
        let (found, refusal) = parts(&["ab\nabcde\nab"], LINES, 4).await;
        assert_eq!(found, ["ab"]);
        assert_eq!(refusal, Some(PollingRefusal::TooLong { bytes_max: 4 }));
        let all = ["abc\n"; 16];
        assert_eq!(parts(&all, LINES, 4).await.1, None);
        let (found, refusal) = parts(&["abc\n"; 17], LINES, 4).await;
        assert_eq!(found.len(), 15);
        assert_eq!(refusal, Some(PollingRefusal::TooLarge { bytes_max: 64 }));
    }
}
