//! Writes exported states.

use alloc::vec::Vec;

use super::Version;

/// Writes a state, field by field; [`Reader`](super::Reader) reads the same fields in the same
/// order.
///
/// ```
/// use linerate_proto::portable::{ImportError, Reader, Version, Writer};
///
/// let mut writer = Writer::new(Version::NEWEST);
/// writer.flag(true);
/// writer.bytes(b"cursor");
/// let state = writer.finish();
///
/// let (mut reader, _version) = Reader::new(&state)?;
/// assert!(reader.flag("subscribed")?);
/// assert_eq!(reader.bytes("position", 100)?, b"cursor");
/// reader.finish()?;
/// # Ok::<_, ImportError>(())
/// ```
pub struct Writer(Vec<u8>);

impl Writer {
    /// Creates a state that begins with its version.
    pub fn new(version: Version) -> Self {
        Self::with_capacity(version, 0)
    }

    /// Creates a state that begins with its version, with room for `bytes` bytes. It grows beyond
    /// that if necessary.
    ///
    /// ```
    /// use linerate_proto::portable::{Version, Writer};
    ///
    /// let mut writer = Writer::with_capacity(Version::NEWEST, 1_000);
    /// writer.bytes(&[0; 900]);
    /// assert!(writer.finish().capacity() >= 1_000);
    /// ```
    pub fn with_capacity(version: Version, bytes: usize) -> Self {
        let mut writer = Self(Vec::with_capacity(bytes));
        writer.u16(version.number());
        writer
    }

    /// Creates a list of fields that does not begin with a version, because the reader learns it
    /// elsewhere.
    ///
    /// ```
    /// use linerate_proto::portable::{ImportError, Reader, Writer};
    ///
    /// let mut writer = Writer::unversioned();
    /// writer.u16(8_080);
    /// let fields = writer.finish();
    /// assert_eq!(Reader::unversioned(&fields).u16("port")?, 8_080);
    /// # Ok::<_, ImportError>(())
    /// ```
    pub const fn unversioned() -> Self {
        Self(Vec::new())
    }

    /// Returns the number of bytes so far.
    pub fn written_bytes(&self) -> usize {
        self.0.len()
    }

    /// Appends bytes, after their number in four bytes.
    ///
    /// # Panics
    /// Panics if there are more than `u32::MAX`.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.parts([bytes]);
    }

    /// Appends bytes that are in several parts, like [`bytes`](Self::bytes).
    ///
    /// # Panics
    /// Panics if there are more than `u32::MAX`.
    pub fn parts<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]> + Clone) {
        let bytes = parts.clone().into_iter().map(<[u8]>::len).sum::<usize>();
        self.u32(u32::try_from(bytes).expect("a field has less than 4 GiB"));
        parts.into_iter().for_each(|part| self.raw(part));
    }

    /// Appends a flag.
    pub fn flag(&mut self, flag: bool) {
        self.u8(flag.into());
    }

    /// Appends a number of one byte.
    pub fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    /// Appends a number of two bytes.
    pub fn u16(&mut self, number: u16) {
        self.raw(&number.to_be_bytes());
    }

    /// Appends a number of four bytes.
    pub fn u32(&mut self, number: u32) {
        self.raw(&number.to_be_bytes());
    }

    /// Appends a number of eight bytes.
    pub fn u64(&mut self, number: u64) {
        self.raw(&number.to_be_bytes());
    }

    /// Appends bytes whose number the reader knows.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the state.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

impl core::fmt::Debug for Writer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Writer({} bytes)", self.0.len())
    }
}
