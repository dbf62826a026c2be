//! Reads exported states.

use super::{ImportError, Version};

/// Reads a state, field by field, in the order in which a [`Writer`](super::Writer) wrote it.
///
/// Each method takes the name of the field, for errors.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads the version of a state.
    ///
    /// # Errors
    /// Fails if this library does not have the version.
    pub fn new(state: &'a [u8]) -> Result<(Self, Version), ImportError> {
        let mut reader = Self(state);
        let found = reader.u16("version")?;
        let version = Version::known(found).ok_or(ImportError::Version { found })?;
        Ok((reader, version))
    }

    /// Reads fields that do not begin with a version, which
    /// [`Writer::unversioned`](super::Writer::unversioned) wrote.
    pub const fn unversioned(fields: &'a [u8]) -> Self {
        Self(fields)
    }

    /// Reads at most `bytes_max` bytes, after their number. They are not copied.
    ///
    /// # Errors
    /// Fails if there are more, or the state ends before their end.
    pub fn bytes(
        &mut self,
        field: &'static str,
        bytes_max: usize,
    ) -> Result<&'a [u8], ImportError> {
        let bytes = self.u32(field)? as usize;
        if bytes > bytes_max {
            return Err(ImportError::TooLong {
                field,
                bytes,
                bytes_max,
            });
        }
        self.raw(field, bytes)
    }

    /// Reads a flag.
    ///
    /// # Errors
    /// Fails if the byte is neither 0 nor 1, or the state ends.
    pub fn flag(&mut self, field: &'static str) -> Result<bool, ImportError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(invalid(field, other)),
        }
    }

    /// Reads a number of one byte.
    ///
    /// # Errors
    /// Fails if the state ends.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, ImportError> {
        self.array(field).map(u8::from_be_bytes)
    }

    /// Reads a number of two bytes.
    ///
    /// # Errors
    /// Fails if the state ends.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, ImportError> {
        self.array(field).map(u16::from_be_bytes)
    }

    /// Reads a number of four bytes.
    ///
    /// # Errors
    /// Fails if the state ends.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, ImportError> {
        self.array(field).map(u32::from_be_bytes)
    }

    /// Reads a number of eight bytes.
    ///
    /// # Errors
    /// Fails if the state ends.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, ImportError> {
        self.array(field).map(u64::from_be_bytes)
    }

    /// Reads a known number of bytes.
    ///
    /// # Errors
    /// Fails if the state ends before their end.
    pub fn raw(&mut self, field: &'static str, bytes: usize) -> Result<&'a [u8], ImportError> {
        let Some((content, rest)) = self.0.split_at_checked(bytes) else {
            let bytes = bytes - self.0.len();
            return Err(ImportError::Truncated { field, bytes });
        };
        self.0 = rest;
        Ok(content)
    }

    /// Reads an array.
    ///
    /// # Errors
    /// Fails if the state ends before its end.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], ImportError> {
        let mut array = [0; N];
        array.copy_from_slice(self.raw(field, N)?);
        Ok(array)
    }

    /// Checks that all of the state was read.
    ///
    /// # Errors
    /// Fails if there are bytes left.
    pub fn finish(self) -> Result<(), ImportError> {
        match self.0.len() {
            0 => Ok(()),
            bytes => Err(ImportError::Trailing { bytes }),
        }
    }
}

impl core::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Reader({} bytes)", self.0.len())
    }
}

/// Returns the error for a field with an invalid value.
pub(crate) fn invalid(field: &'static str, value: impl Into<u64>) -> ImportError {
    let value = value.into();
    ImportError::Invalid { field, value }
}

/// Returns the error for a field with an invalid value if `is_valid` is false.
pub(crate) fn check(
    is_valid: bool,
    field: &'static str,
    value: impl Into<u64>,
) -> Result<(), ImportError> {
    if is_valid {
        Ok(())
    } else {
        Err(invalid(field, value))
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;
    use crate::portable::Writer;

    #[test]
    fn each_kind_of_field_has_its_errors() {
        let mut writer = Writer::new(Version::NEWEST);
        writer.flag(true);
        writer.u32(7);
        writer.u64(8);
        writer.parts([&b"ab"[..], b"c"]);
        let state = writer.finish();
        let read = |state: &[u8], bytes_max| {
            let (mut reader, version) = Reader::new(state)?;
            assert_eq!(version, Version::NEWEST);
            assert!(reader.flag("flag")?);
            assert_eq!(reader.u32("four")?, 7);
            assert_eq!(reader.u64("eight")?, 8);
            assert_eq!(reader.bytes("bytes", bytes_max)?, b"abc");
            reader.finish()
        };
        assert_eq!(read(&state, 3), Ok(()));
        for end in 0..state.len() {
            let error = read(&state[..end], 3).unwrap_err();
            assert!(matches!(error, ImportError::Truncated { .. }), "{error}");
        }
        let error = read(&state, 2).unwrap_err().to_string();
        assert_eq!(error, "bytes has 3 bytes, and the limit is 2");
        let longer = [&state[..], b"x"].concat();
        let error = read(&longer, 3).unwrap_err().to_string();
        assert_eq!(error, "1 bytes after the end of the state");
        let mut other = state.clone();
        other[2] = 2;
        assert_eq!(read(&other, 3).unwrap_err().to_string(), "invalid flag: 2");
        other[1] = 9;
        assert_eq!(
            read(&other, 3).unwrap_err().to_string(),
            "state has version 9, and this program reads versions 1 to 1"
        );
    }
}
