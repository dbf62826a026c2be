//! Streaming decompression of logs: gzip (RFC 1952) and Zstandard (RFC 8878).

mod gzip;
mod magic;
#[cfg(not(target_family = "wasm"))]
mod zstd;
#[cfg(target_family = "wasm")]
#[path = "decode/without_zstd.rs"]
mod zstd;

use gzip::Gzip;
use magic::Magic;
use zstd::Zstd;

/// The limits of a [`Decoder`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of a file after decompression, 64 GiB.
    pub decoded_bytes_max: u64,
    /// The largest Zstandard window, a power of two: 8 MiB, which `zstd` exceeds only with
    /// `--ultra` or `--long`. The window of gzip is always 32 KiB.
    pub window_bytes_max: usize,
    /// The highest ratio of decompressed to compressed size, 2,000: gzip reaches at most 1,032, and
    /// logs 10 to 50. The first 16 MiB of output are exempt.
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
    /// Returns how many bytes of heap it takes to decompress Zstandard, which needs the most.
    pub(crate) fn zstd_bytes(&self) -> usize {
        PIECE_BYTES + zstd::STATE_BYTES + self.window_bytes_max
    }
}

/// The progress of a call with a limit on its work.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How many bytes of the input were consumed.
    pub read: usize,
    /// The work done, in bytes: the bytes that were decoded, plus a fixed amount for each member or
    /// frame.
    pub work: usize,
    /// True if all input was consumed and no decoded bytes are held back. Otherwise the caller must
    /// pass the remaining input again, even if it is empty.
    pub is_done: bool,
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Encoding {
    /// Compressed by `gzip` or `pigz`, with any number of members.
    Gzip,
    /// Not compressed.
    Plain,
    /// Compressed by `zstd` or `pzstd`, with any number of frames.
    Zstd,
}

/// Why a file cannot be decompressed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The file is damaged.
    #[error("the compressed file is damaged at or before byte {at}")]
    Corrupt {
        /// How many bytes of the compressed file were read.
        at: u64,
    },
    /// The file decompresses to far more bytes than any log does.
    #[error("the file decompresses to more than {ratio_max} times its size")]
    Ratio {
        /// The highest ratio that is allowed.
        ratio_max: u64,
    },
    /// The decompressed file is too large.
    #[error("the file decompresses to more than {bytes_max} bytes")]
    TooLarge {
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// The file ends early.
    #[error("the compressed file ends early")]
    Truncated,
    /// The file is compressed in an unsupported way.
    #[error("the file is compressed with {by}; only gzip and zstd are supported")]
    Unsupported {
        /// The program that compresses in this way.
        by: &'static str,
    },
    /// The Zstandard window of the file is too large.
    #[error(
        "the file needs a window of more than {bytes_max} bytes to decompress (zstd --long or \
         --ultra)"
    )]
    Window {
        /// The limit in bytes.
        bytes_max: usize,
    },
}

/// Decompresses one file, or passes it through if it is not compressed.
///
/// The first bytes determine which. Decoded bytes are passed on in pieces of at most 64 KiB, and
/// nothing but the window is kept: a small input that decodes to a large log takes time, not
/// memory. A caller that must limit the time per call uses [`handle_some`](Self::handle_some).
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
    /// The first bytes, up to ten, while they are too few to detect the encoding.
    Beginning(Vec<u8>),
    Failed(DecodeError),
    Gzip(Box<Gzip>),
    Plain,
    Zstd(Box<Zstd>),
}

/// The most decoded bytes that are passed on at once.
const PIECE_BYTES: usize = 64 << 10;
/// The number of decoded bytes up to which the ratio is not limited.
const RATIO_FREE_BYTES: u64 = 16 << 20;

impl Decoder {
    /// Creates a decoder for a new file.
    pub fn new(limits: Limits) -> Self {
        Self {
            state: State::Beginning(Vec::new()),
            limits,
            read_bytes: 0,
            decoded_bytes: 0,
        }
    }

    /// Decodes the next bytes of the file and passes the output to `each`, in order.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is damaged, too large, or compressed in an unsupported way.
    /// Output that was passed on before is correct. All later calls return the same error.
    pub fn handle_input(
        &mut self,
        input: &[u8],
        each: impl FnMut(&[u8]),
    ) -> Result<(), DecodeError> {
        self.handle_some(input, usize::MAX, each)?;
        Ok(())
    }

    /// Like [`handle_input`](Self::handle_input), but stops after about `work_max` bytes of work,
    /// possibly in the middle of the input. The limit is exceeded by at most one piece.
    ///
    /// # Errors
    ///
    /// Same as [`handle_input`](Self::handle_input).
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

    /// Ends the file and passes on the output that was held back.
    ///
    /// # Errors
    ///
    /// Returns an error if the file was truncated, or failed before.
    pub fn handle_eof(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), DecodeError> {
        let is_whole = match &mut self.state {
            State::Beginning(head) => {
                let head = std::mem::take(head);
                self.state = State::Plain;
                self.decode(&head, usize::MAX, &mut each)?;
                return Ok(());
            }
            State::Failed(error) => return Err(error.clone()),
            State::Gzip(gzip) => gzip.is_between_members(),
            State::Plain => true,
            State::Zstd(zstd) => zstd.is_between_frames(),
        };
        if is_whole {
            return Ok(());
        }
        self.fail(DecodeError::Truncated)
    }

    /// Returns how the file is compressed, or `None` if that is not known yet or decoding failed.
    pub fn encoding(&self) -> Option<Encoding> {
        match self.state {
            State::Beginning(_) | State::Failed(_) => None,
            State::Gzip(_) => Some(Encoding::Gzip),
            State::Plain => Some(Encoding::Plain),
            State::Zstd(_) => Some(Encoding::Zstd),
        }
    }

    /// Returns how many decoded bytes were passed on.
    pub fn decoded_bytes(&self) -> u64 {
        self.decoded_bytes
    }

    /// Returns the most bytes of heap that the decoder may use.
    pub fn memory_bytes_max(&self) -> usize {
        match &self.state {
            State::Beginning(_) | State::Failed(_) | State::Plain => 0,
            State::Gzip(_) => PIECE_BYTES + gzip::STATE_BYTES,
            State::Zstd(_) => self.limits.zstd_bytes(),
        }
    }

    /// Returns how many more bytes of heap the decoder may use once the first bytes show how the
    /// file is compressed.
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

/// Passes on the bytes of a file that is not compressed.
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
