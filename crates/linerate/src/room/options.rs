//! The options of a room.

use std::{fmt, sync::Arc};

#[cfg(feature = "deflate")]
use linerate_proto::deflate::Deflate;

use super::SlowMember;
use crate::{
    Message,
    link::{Notice, Policy},
};

/// The settings of a [`Room`](super::Room), or of each of the [`Rooms`](super::Rooms).
///
/// ```
/// use linerate::{CloseCode, room::{Room, RoomOptions, SlowMember}};
///
/// let mut options = RoomOptions::default();
/// options.members_max = 500;
/// options.slow = SlowMember::Close(CloseCode::TRY_AGAIN_LATER);
/// let room = Room::with_options(options);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RoomOptions {
    /// The largest number of members. Default: 100,000, as for the connections of a server.
    pub members_max: usize,
    /// How many bytes of messages may wait for a member, in addition to the send queue of its
    /// connection. Each message counts 128 bytes more than its length. One more message may be
    /// accepted beyond this limit, whatever its size. Default: 64 KiB.
    ///
    /// Members share the memory of a message, but in the worst case, each of them waits for other
    /// messages.
    pub backlog_bytes_max: usize,
    /// What happens to a message for a member whose backlog is full. Default:
    /// [`SlowMember::DropOldest`].
    pub slow: SlowMember,
    /// How messages are compressed for members whose connections use compression; `None` sends
    /// them uncompressed. Default: enabled, because connections compress by default.
    ///
    /// Compression allows an observer who sees the lengths of messages to guess their content.
    #[cfg(feature = "deflate")]
    pub deflate: Option<Deflate>,
    notice: Option<Arc<Notice>>,
}

impl RoomOptions {
    /// Sends a notice to each member that misses messages, at their place among the others;
    /// `notice` gets their number.
    ///
    /// `notice` is called while the connection is locked: it must only create the message, and not
    /// use rooms or connections.
    ///
    /// ```
    /// use linerate::{Message, room::RoomOptions};
    ///
    /// let options = RoomOptions::default()
    ///     .with_notice(|missed| Message::from(format!("({missed} missed)")));
    /// ```
    pub fn with_notice(mut self, notice: impl Fn(u64) -> Message + Send + Sync + 'static) -> Self {
        self.notice = Some(Arc::new(notice));
        self
    }

    pub(super) fn policy(&self) -> Policy {
        Policy::new(self.slow, self.backlog_bytes_max, self.notice.clone())
    }
}

impl Default for RoomOptions {
    fn default() -> Self {
        Self {
            members_max: 100_000,
            backlog_bytes_max: 64 << 10,
            slow: SlowMember::default(),
            #[cfg(feature = "deflate")]
            deflate: Some(Deflate::default()),
            notice: None,
        }
    }
}

impl fmt::Debug for RoomOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoomOptions")
            .field("members_max", &self.members_max)
            .field("backlog_bytes_max", &self.backlog_bytes_max)
            .field("slow", &self.slow)
            .finish_non_exhaustive()
    }
}
