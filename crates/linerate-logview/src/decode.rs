//! Decompression of logs as they stream in: gzip (RFC 1952) and Zstandard (RFC 8878).

mod error;
mod gzip;
mod magic;
mod zstd;

pub use error::DecodeError;
use gzip::Gzip;
use magic::Magic;
use zstd::Zstd;

/// What a [`Decoder`] may take.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// How many bytes a file may have once it is decompressed, 64 GiB.
    pub decoded_bytes_max: u64,
    /// The largest window of Zstandard, a power of two: 8 MiB, which `zstd` exceeds only when asked
    /// to by `--ultra` or `--long`. That of gzip is 32 KiB by its format.
    pub window_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            decoded_bytes_max: 64 << 30,
            window_bytes_max: 8 << 20,
        }
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Encoding {
    /// As `gzip` and `pigz` do it, in any number of members.
    Gzip,
    /// Not at all.
    Plain,
    /// As `zstd` and `pzstd` do it, in any number of frames.
    Zstd,
}

/// Decompresses one file, or passes it through as it is.
///
/// The first bytes tell which. What was decoded is handed out in pieces of at most 64 KiB, and
/// nothing but the window is kept: a small input that decodes to a large log takes time, not
/// memory. Whoever must not be kept busy for long feeds small pieces; 1 KiB of gzip is 1 MiB at
/// most.
///
/// ```
/// use linerate_logview::decode::{DecodeError, Decoder, Encoding, Limits};
///
/// // `printf 'a\n' | gzip -n`
/// let file = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\xe4\x02\0\x07\xa1\xea\xdd\x02\0\0\0";
/// let mut decoder = Decoder::new(Limits::default());
/// let mut log = Vec::new();
/// for piece in file.chunks(7) {
///     decoder.handle_input(piece, |decoded| log.extend_from_slice(decoded))?;
/// }
/// decoder.handle_eof(|decoded| log.extend_from_slice(decoded))?;
/// assert_eq!((decoder.encoding(), &log[..]), (Some(Encoding::Gzip), &b"a\n"[..]));
/// # Ok::<(), DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    state: State,
    limits: Limits,
    decoded_bytes: u64,
}

#[derive(Debug)]
enum State {
    /// The first bytes, too few to tell.
    Beginning(Vec<u8>),
    Failed(DecodeError),
    Gzip(Box<Gzip>),
    Plain,
    Zstd(Box<Zstd>),
}

/// How many decoded bytes are handed out at once.
const PIECE_BYTES: usize = 64 << 10;

impl Decoder {
    /// Creates a decoder that stands at the beginning of a file.
    pub fn new(limits: Limits) -> Self {
        Self {
            state: State::Beginning(Vec::new()),
            limits,
            decoded_bytes: 0,
        }
    }

    /// Takes the next bytes of the file and hands what they decode to to `each`, in order.
    ///
    /// # Errors
    ///
    /// The file is damaged, too large, or compressed in a way that isn't supported. What was
    /// handed out before is right; the decoder gives the same error from then on.
    pub fn handle_input(
        &mut self,
        input: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), DecodeError> {
        let State::Beginning(head) = &mut self.state else {
            return self.decode(input, &mut each);
        };
        if head.is_empty() && magic::find(input) == Magic::Plain {
            self.state = State::Plain;
            return self.decode(input, &mut each);
        }
        head.extend_from_slice(input);
        let head = std::mem::take(head);
        self.state = match magic::find(&head) {
            Magic::TooShort => {
                self.state = State::Beginning(head);
                return Ok(());
            }
            found => self.begin(found),
        };
        self.decode(&head, &mut each)
    }

    /// Ends the file: hands out what was held back.
    ///
    /// # Errors
    ///
    /// The file was cut, or failed before.
    pub fn handle_eof(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), DecodeError> {
        let is_whole = match &mut self.state {
            State::Beginning(head) => {
                let head = std::mem::take(head);
                self.state = State::Plain;
                return self.decode(&head, &mut each);
            }
            State::Failed(error) => return Err(error.clone()),
            State::Gzip(gzip) => gzip.stands_between_members(),
            State::Plain => true,
            State::Zstd(zstd) => zstd.stands_between_frames(),
        };
        if is_whole {
            return Ok(());
        }
        self.fail(DecodeError::Truncated)
    }

    /// Returns how the file is compressed, as soon as it is known.
    pub fn encoding(&self) -> Option<Encoding> {
        match self.state {
            State::Beginning(_) | State::Failed(_) => None,
            State::Gzip(_) => Some(Encoding::Gzip),
            State::Plain => Some(Encoding::Plain),
            State::Zstd(_) => Some(Encoding::Zstd),
        }
    }

    /// Returns how many bytes were handed out.
    pub fn decoded_bytes(&self) -> u64 {
        self.decoded_bytes
    }

    /// Returns how many bytes of heap the decoder may come to hold.
    pub fn memory_bytes_max(&self) -> usize {
        match &self.state {
            State::Beginning(_) | State::Failed(_) | State::Plain => 0,
            State::Gzip(_) => PIECE_BYTES + gzip::STATE_BYTES,
            State::Zstd(_) => PIECE_BYTES + zstd::STATE_BYTES + self.limits.window_bytes_max,
        }
    }

    fn begin(&self, found: Magic) -> State {
        match found {
            Magic::Gzip => State::Gzip(Box::default()),
            Magic::Plain | Magic::TooShort => State::Plain,
            Magic::Unsupported(by) => State::Failed(DecodeError::Unsupported { by }),
            Magic::Zstd => match Zstd::new(self.limits.window_bytes_max) {
                Ok(zstd) => State::Zstd(Box::new(zstd)),
                Err(error) => State::Failed(error),
            },
        }
    }

    fn decode(&mut self, input: &[u8], each: &mut impl FnMut(&[u8])) -> Result<(), DecodeError> {
        let (decoded_bytes, bytes_max) = (&mut self.decoded_bytes, self.limits.decoded_bytes_max);
        let mut count = |piece: &[u8]| {
            let room = usize::try_from(bytes_max - *decoded_bytes).unwrap_or(usize::MAX);
            let fitting = &piece[..piece.len().min(room)];
            *decoded_bytes += fitting.len() as u64;
            each(fitting);
            if fitting.len() < piece.len() {
                return Err(DecodeError::TooLarge { bytes_max });
            }
            Ok(())
        };
        let result = match &mut self.state {
            State::Failed(error) => Err(error.clone()),
            State::Gzip(gzip) => gzip.decode(input, &mut count),
            State::Beginning(_) | State::Plain => count(input),
            State::Zstd(zstd) => zstd.decode(input, &mut count),
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: DecodeError) -> Result<(), DecodeError> {
        self.state = State::Failed(error.clone());
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    mod damage;
    mod files;
}
