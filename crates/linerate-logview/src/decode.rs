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
    /// How many times its size a file may have once it is decompressed, 2,000: gzip reaches 1,032 at most, and logs 10 to
    /// 50. The first 16 MiB are free.
    pub ratio_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            decoded_bytes_max: 64 << 30,
            window_bytes_max: 8 << 20,
            ratio_max: 2_000,
        }
    }
}

impl Limits {
    /// Returns how many bytes of heap it takes to decompress Zstandard, which takes most.
    pub(crate) fn zstd_bytes(&self) -> usize {
        PIECE_BYTES + zstd::STATE_BYTES + self.window_bytes_max
    }
}

/// How far a call came that was told how much to do at most.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How many bytes of the input were taken.
    pub read: usize,
    /// How much work that was, in bytes: those that were decoded, and for each member or frame a few more.
    pub work: usize,
    /// Whether all of the input was taken and nothing that it decodes to is held back. Else, the rest of the input is to
    /// be given again, even if it is empty.
    pub is_done: bool,
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
/// memory. A caller that must not be kept busy for long uses [`handle_some`](Self::handle_some).
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
    read_bytes: u64,
    decoded_bytes: u64,
}

#[derive(Debug)]
enum State {
    /// The first bytes, too few to tell: ten at most.
    Beginning(Vec<u8>),
    Failed(DecodeError),
    Gzip(Box<Gzip>),
    Plain,
    Zstd(Box<Zstd>),
}

/// How many decoded bytes are handed out at once.
const PIECE_BYTES: usize = 64 << 10;
/// How many decoded bytes no ratio is asked of.
const RATIO_FREE_BYTES: u64 = 16 << 20;

impl Decoder {
    /// Creates a decoder that stands at the beginning of a file.
    pub fn new(limits: Limits) -> Self {
        Self {
            state: State::Beginning(Vec::new()),
            limits,
            read_bytes: 0,
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
        each: impl FnMut(&[u8]),
    ) -> Result<(), DecodeError> {
        self.handle_some(input, usize::MAX, each)?;
        Ok(())
    }

    /// Does what [`handle_input`](Self::handle_input) does, but stops in the middle of the input after about `work_max`
    /// bytes of work, which are exceeded by a piece at most.
    ///
    /// # Errors
    ///
    /// As [`handle_input`](Self::handle_input).
    pub fn handle_some(
        &mut self,
        input: &[u8],
        work_max: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Progress, DecodeError> {
        let State::Beginning(head) = &mut self.state else {
            return self.decode(input, work_max, &mut each);
        };
        if head.is_empty() && magic::find(input) == Magic::Plain {
            self.state = State::Plain;
            return self.decode(input, work_max, &mut each);
        }
        let mut read = 0;
        let found = loop {
            let found = magic::find(head);
            if found != Magic::TooShort {
                break found;
            }
            let Some(&byte) = input.get(read) else {
                return Ok(Progress {
                    read,
                    work: 0,
                    is_done: true,
                });
            };
            head.push(byte);
            read += 1;
        };
        let head = std::mem::take(head);
        self.state = self.begin(found);
        self.decode(&head, usize::MAX, &mut each)?;
        let progress = self.decode(&input[read..], work_max, &mut each)?;
        Ok(Progress {
            read: read + progress.read,
            ..progress
        })
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
                self.decode(&head, usize::MAX, &mut each)?;
                return Ok(());
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
            State::Zstd(_) => self.limits.zstd_bytes(),
        }
    }

    /// Returns how many bytes of heap it may come to hold once the first bytes tell how the file is compressed.
    pub(crate) fn growth_bytes_max(&self) -> usize {
        match &self.state {
            State::Beginning(_) => self.limits.zstd_bytes(),
            State::Failed(_) | State::Gzip(_) | State::Plain | State::Zstd(_) => 0,
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

    fn decode(
        &mut self,
        input: &[u8],
        work_max: usize,
        each: &mut impl FnMut(&[u8]),
    ) -> Result<Progress, DecodeError> {
        let Limits {
            decoded_bytes_max: bytes_max,
            ratio_max,
            ..
        } = self.limits;
        let ratio_bytes_max = ratio_max.saturating_mul(self.read_bytes + input.len() as u64);
        let decoded_bytes = &mut self.decoded_bytes;
        let mut count = |piece: &[u8]| {
            let room = usize::try_from(bytes_max - *decoded_bytes).unwrap_or(usize::MAX);
            let fitting = &piece[..piece.len().min(room)];
            *decoded_bytes += fitting.len() as u64;
            each(fitting);
            if fitting.len() < piece.len() {
                return Err(DecodeError::TooLarge { bytes_max });
            }
            if *decoded_bytes > ratio_bytes_max.max(RATIO_FREE_BYTES) {
                return Err(DecodeError::Ratio { ratio_max });
            }
            Ok(())
        };
        let result = match &mut self.state {
            State::Failed(error) => Err(error.clone()),
            State::Gzip(gzip) => gzip.decode(input, work_max, &mut count),
            State::Beginning(_) | State::Plain => pass(input, work_max, &mut count),
            State::Zstd(zstd) => zstd.decode(input, work_max, &mut count),
        };
        match result {
            Ok(progress) => {
                self.read_bytes += progress.read as u64;
                Ok(progress)
            }
            Err(error) => self.fail(error).map(|()| Progress::default()),
        }
    }

    fn fail(&mut self, error: DecodeError) -> Result<(), DecodeError> {
        self.state = State::Failed(error.clone());
        Err(error)
    }
}

/// Hands out the bytes of a file that is not compressed.
fn pass(
    input: &[u8],
    work_max: usize,
    each: &mut impl FnMut(&[u8]) -> Result<(), DecodeError>,
) -> Result<Progress, DecodeError> {
    let read = input.len().min(work_max);
    each(&input[..read])?;
    Ok(Progress {
        read,
        work: read,
        is_done: read == input.len(),
    })
}

#[cfg(test)]
mod tests {
    mod damage;
    mod files;
    mod work;
}
