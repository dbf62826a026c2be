//! State that a connection needs only once it is pinged or if it compresses.

use alloc::boxed::Box;

use crate::close::ControlPayload;
#[cfg(feature = "deflate")]
use crate::deflate::Codec;

/// State behind a pointer, which stays allocated after its first use.
#[derive(Debug, Default)]
pub(super) struct LazyState(Option<Box<Content>>);

#[derive(Debug)]
struct Content {
    /// The answer to the newest Ping, or our Close frame, after which no Ping is answered.
    answer: ControlPayload,
    #[cfg(feature = "deflate")]
    codec: Option<Box<Codec>>,
}

impl LazyState {
    #[inline]
    pub(super) fn set_answer(&mut self, payload: &[u8]) {
        self.content().answer.set(payload);
    }

    /// Returns the payload that was set last.
    #[inline]
    pub(super) fn answer(&self) -> &[u8] {
        match &self.0 {
            Some(content) => content.answer.as_slice(),
            None => &[],
        }
    }

    #[cfg(feature = "deflate")]
    pub(super) fn set_codec(&mut self, codec: Codec) {
        self.content().codec = Some(Box::new(codec));
    }

    #[cfg(feature = "deflate")]
    #[inline]
    pub(super) fn codec(&self) -> Option<&Codec> {
        self.0.as_ref()?.codec.as_deref()
    }

    #[cfg(feature = "deflate")]
    #[inline]
    pub(super) fn codec_mut(&mut self) -> Option<&mut Codec> {
        self.0.as_mut()?.codec.as_deref_mut()
    }

    fn content(&mut self) -> &mut Content {
        self.0.get_or_insert_with(|| {
            Box::new(Content {
                answer: ControlPayload::new(),
                #[cfg(feature = "deflate")]
                codec: None,
            })
        })
    }
}
