//! Compares the masking, UTF-8 and newline kernels with those of other libraries.
//!
//! Payloads follow one another in a buffer with 6 bytes before each, as masked frames do after a
//! read, and are used in turn. Masking one payload over and over would instead measure how its
//! loads wait for the stores of the previous pass. Each benchmark repeats one length, which makes
//! the branches of every kernel equally predictable. All answers are checked before anything is
//! timed.

use divan::{Bencher, black_box};
use linerate_simd::utf8::Validator;
use linerate_simd::{mask, newline, utf8};

/// The masking kernels of other libraries, compiled from their own source files.
///
/// They are private in those libraries. The build script finds the files that Cargo has unpacked.
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, missing_docs, unused, unexpected_cfgs)]
#[allow(unreachable_pub)]
#[rustfmt::skip]
mod contenders {
    include!(concat!(env!("OUT_DIR"), "/contenders.rs"));
}

const LENGTHS: [usize; 12] = [
    5, 16, 20, 40, 64, 125, 240, 512, 1_024, 4_096, 16_384, 65_536,
];

/// Length of the header of a short masked frame.
const HEADER_LEN: usize = 6;

/// Frames are repeated up to about this total length, which fits into the first-level cache.
const READ_LEN: usize = 16_384;

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

fn main() {
    masking::check();
    text::check();
    lines::check();
    divan::main();
}

/// Frames of equal length, as a read leaves them in a buffer.
struct Frames {
    buffer: Vec<u8>,
    frame_len: usize,
    next_at: usize,
}

impl Frames {
    /// Fills a buffer with frames whose payload is `pattern`, repeated and cut to `len` bytes.
    ///
    /// A code point that would be cut is replaced, so that the payload of a text remains valid
    /// UTF-8.
    fn new(pattern: &str, len: usize) -> Self {
        let mut payload = pattern.repeat(len.div_ceil(pattern.len()));
        payload.truncate(payload.floor_char_boundary(len));
        let mut frame = vec![0; HEADER_LEN];
        frame.extend(payload.bytes());
        frame.resize(HEADER_LEN + len, b'.');
        let frame_len = frame.len();
        Self {
            buffer: frame.repeat(READ_LEN.div_ceil(frame_len)),
            frame_len,
            next_at: 0,
        }
    }

    /// Returns the next payload. After the last one, starts again with the first.
    #[inline(always)]
    fn payload(&mut self) -> &mut [u8] {
        let (start, end) = (self.next_at, self.next_at + self.frame_len);
        self.next_at = if end == self.buffer.len() { 0 } else { end };
        black_box(&mut self.buffer[start + HEADER_LEN..end])
    }
}

#[divan::bench_group(name = "mask")]
mod masking {
    use super::*;

    type Kernel = fn([u8; 4], &mut [u8]);

    const KERNELS: [(&str, Kernel); 3] = [
        ("linerate", |key, payload| mask::apply(key, 0, payload)),
        ("tokio-websockets", |mut key, payload| {
            contenders::tokio_websockets::frame(&mut key, payload);
        }),
        ("tungstenite", |key, payload| {
            contenders::tungstenite::apply_mask(payload, key)
        }),
    ];

    /// Checks every kernel at every length.
    pub(super) fn check() {
        for len in LENGTHS {
            let payload = Frames::new("Spam", len).payload().to_vec();
            let mut expected = vec![0; len];
            mask::naive::copy(KEY, 0, &payload, &mut expected);
            for (name, kernel) in KERNELS {
                let mut masked = payload.clone();
                kernel(KEY, &mut masked);
                assert!(masked == expected, "{name} masks {len} bytes wrongly");
            }
            let mut appended = Vec::new();
            mask::append(KEY, 0, &payload, &mut appended);
            assert!(appended == expected, "append masks {len} bytes wrongly");
        }
    }

    #[divan::bench(args = LENGTHS)]
    fn linerate(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        bencher.bench_local(|| {
            mask::apply(black_box(KEY), 0, frames.payload());
        });
    }

    #[divan::bench(args = LENGTHS)]
    fn tokio_websockets(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        bencher.bench_local(|| {
            contenders::tokio_websockets::frame(&mut black_box(KEY), frames.payload());
        });
    }

    #[divan::bench(args = LENGTHS)]
    fn tungstenite(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        bencher.bench_local(|| {
            contenders::tungstenite::apply_mask(frames.payload(), black_box(KEY));
        });
    }

    #[divan::bench(args = LENGTHS)]
    fn naive(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        bencher.bench_local(|| {
            mask::naive::apply(black_box(KEY), 0, frames.payload());
        });
    }

    /// Unmasks into another buffer in one pass.
    #[divan::bench(args = LENGTHS)]
    fn linerate_append(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        let mut message = Vec::with_capacity(len);
        bencher.bench_local(|| {
            message.clear();
            mask::append(black_box(KEY), 0, frames.payload(), &mut message);
            black_box(&message);
        });
    }

    /// Unmasks into another buffer in two passes, as would be necessary without [`mask::append`].
    #[divan::bench(args = LENGTHS)]
    fn linerate_copy_then_apply(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        let mut message = Vec::with_capacity(len);
        bencher.bench_local(|| {
            message.clear();
            message.extend_from_slice(frames.payload());
            mask::apply(black_box(KEY), 0, &mut message);
            black_box(&message);
        });
    }
}

/// tungstenite validates whole messages with the standard library. tokio-websockets uses simdutf8's
/// `basic` for the last piece of a message and `compat` for the pieces before it.
#[divan::bench_group(name = "utf8")]
mod text {
    use super::*;

    const ASCII: &str = r#"{"channel":"prices","offset":18723,"data":{"bid":1.0843,"ask":1.0845}}"#;
    const MIXED: &str = "Γαζέες καὶ μυρτιὲς δὲν θὰ βρῶ πιὰ στὸ χρυσαφὶ ξέφωτο — いろはにほへど 🍣 ";

    /// Checks every validator at every length, with and without an invalid byte.
    pub(super) fn check() {
        for len in LENGTHS {
            for pattern in [ASCII, MIXED] {
                let mut frames = Frames::new(pattern, len);
                let payload = frames.payload();
                for valid in [true, false] {
                    assert_eq!(std::str::from_utf8(payload).is_ok(), valid);
                    assert_eq!(utf8::validate(payload).is_ok(), valid);
                    assert_eq!(Validator::new().push(payload).is_ok(), valid);
                    assert_eq!(simdutf8::basic::from_utf8(payload).is_ok(), valid);
                    assert_eq!(simdutf8::compat::from_utf8(payload).is_ok(), valid);
                    payload[len / 2] = 0xff;
                }
            }
        }
    }

    macro_rules! validators {
        ($group:ident, $pattern:ident) => {
            mod $group {
                use super::*;

                #[divan::bench(args = LENGTHS)]
                fn linerate_validate(bencher: Bencher<'_, '_>, len: usize) {
                    let mut frames = Frames::new($pattern, len);
                    bencher.bench_local(|| utf8::validate(frames.payload()).is_ok());
                }

                #[divan::bench(args = LENGTHS)]
                fn linerate_validator(bencher: Bencher<'_, '_>, len: usize) {
                    let mut frames = Frames::new($pattern, len);
                    let mut validator = Validator::new();
                    bencher.bench_local(|| validator.push(frames.payload()).is_ok());
                }

                #[divan::bench(args = LENGTHS)]
                fn simdutf8_basic(bencher: Bencher<'_, '_>, len: usize) {
                    let mut frames = Frames::new($pattern, len);
                    bencher.bench_local(|| simdutf8::basic::from_utf8(frames.payload()).is_ok());
                }

                #[divan::bench(args = LENGTHS)]
                fn simdutf8_compat(bencher: Bencher<'_, '_>, len: usize) {
                    let mut frames = Frames::new($pattern, len);
                    bencher.bench_local(|| simdutf8::compat::from_utf8(frames.payload()).is_ok());
                }

                #[divan::bench(args = LENGTHS)]
                fn std(bencher: Bencher<'_, '_>, len: usize) {
                    let mut frames = Frames::new($pattern, len);
                    bencher.bench_local(|| std::str::from_utf8(frames.payload()).is_ok());
                }
            }
        };
    }

    validators!(ascii, ASCII);
    validators!(mixed, MIXED);
}

#[divan::bench_group(name = "newline")]
mod lines {
    use super::*;

    /// A line of an access log.
    const LINE: &str = "192.0.2.7 - - [20/Nov/2026:18:00:00 +0000] \"GET /favicon.ico HTTP/1.1\" \
        200 4286 \"-\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\"\n";
    /// The masking kernels of other libraries, compiled from their own source files.
///
/// They are private in those libraries. The build script finds the files that Cargo has unpacked.
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, missing_docs, unused, unexpected_cfgs)]
#[allow(unreachable_pub)]
#[rustfmt::skip]
mod contenders {
    include!(concat!(env!("OUT_DIR"), "/contenders.rs"));
}

    const LENGTHS: [usize; 4] = [125, 1_024, 16_384, 65_536];

    /// Checks every search at every length.
    pub(super) fn check() {
        for len in LENGTHS {
            let mut frames = Frames::new(LINE, len);
            let payload = &*frames.payload();
            assert!(newline::positions(payload).eq(memchr::memchr_iter(b'\n', payload)));
            assert_eq!(
                newline::count(payload),
                memchr::memchr_iter(b'\n', payload).count()
            );
            assert_eq!(newline::find(payload), memchr::memchr(b'\n', payload));
            assert_eq!(newline::rfind(payload), memchr::memrchr(b'\n', payload));
        }
    }

    #[divan::bench(args = LENGTHS)]
    fn positions_linerate(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new(LINE, len);
        bencher.bench_local(|| newline::positions(frames.payload()).sum::<usize>());
    }

    #[divan::bench(args = LENGTHS)]
    fn positions_memchr(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new(LINE, len);
        bencher.bench_local(|| memchr::memchr_iter(b'\n', frames.payload()).sum::<usize>());
    }

    #[divan::bench(args = LENGTHS)]
    fn count_linerate(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new(LINE, len);
        bencher.bench_local(|| newline::count(frames.payload()));
    }

    #[divan::bench(args = LENGTHS)]
    fn count_memchr(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new(LINE, len);
        bencher.bench_local(|| memchr::memchr_iter(b'\n', frames.payload()).count());
    }

    /// The whole payload is one unfinished line.
    #[divan::bench(args = LENGTHS)]
    fn find_linerate(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        bencher.bench_local(|| newline::find(frames.payload()));
    }

    /// The whole payload is one unfinished line.
    #[divan::bench(args = LENGTHS)]
    fn find_memchr(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        bencher.bench_local(|| memchr::memchr(b'\n', frames.payload()));
    }

    /// The whole payload is one unfinished line.
    #[divan::bench(args = LENGTHS)]
    fn rfind_linerate(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        bencher.bench_local(|| newline::rfind(frames.payload()));
    }

    /// The whole payload is one unfinished line.
    #[divan::bench(args = LENGTHS)]
    fn rfind_memchr(bencher: Bencher<'_, '_>, len: usize) {
        let mut frames = Frames::new("Spam", len);
        bencher.bench_local(|| memchr::memrchr(b'\n', frames.payload()));
    }
}
