//! `--watch`: reads growing files and standard input as one log.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use linerate_logview::{
    format::Format,
    input::{Input, LogEvent},
};
use linerate_uploads::FileIdentity;

use super::counter::Counter;
use super::files::{is_stdin, name};
use super::source::{READ_BYTES, input, open, read_some};
use super::stdin::Stdin;

/// How much of one source is read before the next one gets its turn.
const TURN_BYTES: usize = 8 << 20;
/// Maximum length of an incomplete line that is kept until its end arrives. This is the
/// aggregator's limit.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Sources that are read as they grow.
#[derive(Debug)]
pub(super) struct Follower {
    sources: Vec<Source>,
    format: Option<Format>,
    /// Index of the source whose format was used last.
    last: Option<usize>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    reader: Reader,
    input: Input,
    /// The beginning of a line whose end has not arrived yet. It is kept here because lines of
    /// several sources must not mix.
    unfinished: Vec<u8>,
}

#[derive(Debug)]
enum Reader {
    Ended,
    File { file: File, position: u64 },
    Stdin(Stdin),
}

impl Follower {
    /// Opens all sources at their beginning.
    ///
    /// # Errors
    /// Returns an error if a source cannot be opened; the error names it.
    pub(super) fn open(files: &[PathBuf], format: Option<Format>) -> anyhow::Result<Self> {
        let open = |path: &PathBuf| {
            Ok(Source {
                reader: Reader::open(path)?,
                path: path.clone(),
                input: input(format.as_ref()),
                unfinished: Vec::new(),
            })
        };
        Ok(Self {
            sources: files.iter().map(open).collect::<anyhow::Result<_>>()?,
            format,
            last: None,
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Counts what has arrived since the last call, up to [`TURN_BYTES`] of each source. Returns
    /// whether anything has arrived.
    ///
    /// # Errors
    /// Returns an error if a source cannot be read or decompressed; the error names it.
    pub(super) fn poll(&mut self, log: &mut Counter) -> anyhow::Result<bool> {
        let mut has_grown = false;
        for (place, source) in self.sources.iter_mut().enumerate() {
            let is_same = self.last.replace(place) == Some(place);
            if let Some(format) = source.input.format().filter(|_| !is_same) {
                log.set_format(format);
            }
            let grown = source.poll(log, self.format.as_ref(), &mut self.buffer);
            has_grown |= grown.with_context(|| format!("cannot read {}", name(&source.path)))?;
        }
        Ok(has_grown)
    }

    /// Returns whether all sources have ended for good.
    pub(super) fn has_ended(&self) -> bool {
        let has_ended = |source: &Source| matches!(source.reader, Reader::Ended);
        self.sources.iter().all(has_ended)
    }
}

impl Source {
    fn poll(
        &mut self,
        log: &mut Counter,
        format: Option<&Format>,
        buffer: &mut [u8],
    ) -> anyhow::Result<bool> {
        let mut taken = 0;
        while taken < TURN_BYTES {
            match self.reader.read(buffer)? {
                Chunk::Bytes(bytes) => {
                    taken += bytes.len();
                    self.count(bytes, log)?;
                }
                Chunk::Nothing => break,
                Chunk::End => {
                    self.end(log)?;
                    break;
                }
            }
        }
        if taken == 0 && self.was_replaced() {
            // The file was rotated. The old one has been read to its end, so continue with the new
            // one.
            self.end(log)?;
            self.reader = Reader::open(&self.path)?;
            self.input = input(format);
        }
        Ok(taken > 0)
    }

    /// Counts the lines that are completed by `bytes`, and keeps the incomplete rest.
    fn count(&mut self, bytes: &[u8], log: &mut Counter) -> anyhow::Result<()> {
        let Self {
            input, unfinished, ..
        } = self;
        input.handle_input(bytes, |event| match event {
            LogEvent::Bytes(bytes) => count_lines(bytes, unfinished, log),
            event => log.count(event),
        })?;
        Ok(())
    }

    fn end(&mut self, log: &mut Counter) -> anyhow::Result<()> {
        let Self {
            input, unfinished, ..
        } = self;
        let ended = input.handle_eof(|event| match event {
            LogEvent::Bytes(bytes) => count_lines(bytes, unfinished, log),
            event => log.count(event),
        });
        log.handle_input(unfinished);
        log.handle_eof();
        unfinished.clear();
        self.reader = Reader::Ended;
        Ok(ended?)
    }

    /// Returns whether the path now refers to another file, or the file was truncated.
    fn was_replaced(&self) -> bool {
        let Reader::File { file, position } = &self.reader else {
            return false;
        };
        let (ours, theirs) = (
            FileIdentity::of_file(file),
            FileIdentity::of_path(&self.path),
        );
        let (Ok(ours), Ok(theirs), Ok(there)) = (ours, theirs, self.path.metadata()) else {
            return false;
        };
        ours != theirs || there.len() < *position
    }
}

fn count_lines(bytes: &[u8], unfinished: &mut Vec<u8>, log: &mut Counter) {
    let end = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let (lines, rest) = bytes.split_at(end);
    if !lines.is_empty() {
        log.handle_input(unfinished);
        log.handle_input(lines);
        unfinished.clear();
    }
    // One byte more than the limit is enough to recognize a line as too long.
    let room = (LINE_BYTES_MAX + 1).saturating_sub(unfinished.len());
    unfinished.extend_from_slice(&rest[..rest.len().min(room)]);
}

enum Chunk<'a> {
    Bytes(&'a [u8]),
    End,
    Nothing,
}

impl Reader {
    fn open(path: &Path) -> anyhow::Result<Self> {
        if !is_stdin(path) {
            return Ok(Self::File {
                file: open(path)?,
                position: 0,
            });
        }
        Ok(Self::Stdin(Stdin::start()?))
    }

    fn read<'a>(&mut self, buffer: &'a mut [u8]) -> io::Result<Chunk<'a>> {
        match self {
            Self::Ended => Ok(Chunk::Nothing),
            Self::File { file, position } => match read_some(file, buffer)? {
                0 => Ok(Chunk::Nothing),
                len => {
                    *position += len as u64;
                    Ok(Chunk::Bytes(&buffer[..len]))
                }
            },
            Self::Stdin(stdin) => Ok(match stdin.read(buffer, Duration::ZERO)? {
                None => Chunk::Nothing,
                Some(0) => Chunk::End,
                Some(len) => Chunk::Bytes(&buffer[..len]),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::path::Path;

    use std::num::NonZeroUsize;

    use linerate_logview::aggregate::Limits;

    use super::{Counter, Follower};

    const LINE: &str = "192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
    const JSON: &str = "{\"ts\":1611280025,\"status\":500,\"uri\":\"/\"}\n";

    fn counter() -> Counter {
        Counter::with_threads(Limits::default(), NonZeroUsize::new(2).unwrap())
    }

    /// Returns the numbers of requests and lines.
    fn counted(log: &mut Counter) -> (u64, u64) {
        let log = log.settled();
        (log.requests(), log.lines())
    }

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn lines_of_growing_files_do_not_mix_and_keep_their_formats() {
        let folder = tempfile::tempdir().unwrap();
        let [common, json] = ["a.log", "b.log"].map(|name| folder.path().join(name));
        append(&common, &LINE[..30]);
        append(&json, JSON);
        let mut log = counter();
        let mut follower = Follower::open(&[common.clone(), json.clone()], None).unwrap();
        assert!(follower.poll(&mut log).unwrap());
        assert_eq!(counted(&mut log), (1, 1));
        append(&common, &LINE[30..]);
        append(&common, LINE);
        append(&json, &JSON[..9]);
        assert!(follower.poll(&mut log).unwrap());
        assert_eq!(counted(&mut log), (3, 3));
        append(&json, &JSON[9..]);
        append(&common, "no request\n");
        assert!(follower.poll(&mut log).unwrap());
        assert_eq!(counted(&mut log), (4, 5));
        assert!(!follower.poll(&mut log).unwrap());
        assert!(!follower.has_ended());
    }

    #[test]
    fn rotated_and_cut_files_are_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        append(&path, LINE);
        append(&path, LINE.trim_end());
        let mut log = counter();
        let mut follower = Follower::open(std::slice::from_ref(&path), None).unwrap();
        follower.poll(&mut log).unwrap();
        fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        append(&path, JSON);
        // The first call finds the new file, the second reads it.
        follower.poll(&mut log).unwrap();
        assert_eq!(counted(&mut log), (2, 2));
        follower.poll(&mut log).unwrap();
        assert_eq!(counted(&mut log), (3, 3));
        fs::write(&path, "{\"ts\":1,\"status\":9}\n").unwrap();
        follower.poll(&mut log).unwrap();
        follower.poll(&mut log).unwrap();
        assert_eq!(counted(&mut log), (4, 4));
    }

    #[test]
    fn endless_lines_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        append(&path, &"x".repeat(1 << 20));
        let mut log = counter();
        let mut follower = Follower::open(std::slice::from_ref(&path), None).unwrap();
        follower.poll(&mut log).unwrap();
        assert!(follower.sources[0].unfinished.len() <= 65_537);
        append(&path, "\n");
        follower.poll(&mut log).unwrap();
        assert_eq!(log.settled().summary().unparsed_reasons["too long"], 1);
    }
}
