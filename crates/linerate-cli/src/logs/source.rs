//! Reads logs from files and standard input, with a progress bar on a terminal.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use linerate_logview::{decode, format::Format, input::Input, summary::Damage};

use super::counter::Counter;
use super::files::{is_stdin, name};

/// Maximum size of a single read.
pub(super) const READ_BYTES: usize = 256 << 10;

/// What is done after each read. It gets the log, and how many bytes of the file were read; an
/// error ends the reading.
pub(super) type AfterRead<'a> = dyn FnMut(&mut Counter, usize) -> anyhow::Result<()> + 'a;

/// Reads all files in order as one log, with a progress bar. Without a `format`, the format of each
/// file is detected.
///
/// # Errors
/// Returns an error if a file cannot be read or decompressed; the error names it. A damaged file is
/// counted up to the damage, which the summary reports, unless it has no lines before it. If
/// `is_filtered`, also returns an error as soon as the log is too large to be filtered.
pub(super) fn read_all(
    files: &[PathBuf],
    format: Option<&Format>,
    log: &mut Counter,
    is_filtered: bool,
) -> anyhow::Result<()> {
    let progress = progress_bar(files);
    let mut after_read = |log: &mut Counter, bytes: usize| {
        progress.inc(bytes as u64);
        match log.log().refusal().filter(|_| is_filtered) {
            Some(refusal) => bail!(refusal),
            None => Ok(()),
        }
    };
    let mut read_stdin = |buffer: &mut [u8]| read_some(&mut io::stdin().lock(), buffer).map(Some);
    read_each(files, format, log, &mut read_stdin, &mut after_read)?;
    progress.finish_and_clear();
    Ok(())
}

/// Reads into a buffer: returns the number of bytes, 0 at the end, or `None` if nothing has arrived
/// yet.
pub(super) type Reading<'a> = dyn FnMut(&mut [u8]) -> io::Result<Option<usize>> + 'a;

/// Reads all files in order as one log, like [`read_all`].
///
/// # Errors
/// Returns an error if a file cannot be read or decompressed, unless it is damaged after its first
/// line; the error names the file. Also returns the first error of `after_read`.
pub(super) fn read_each(
    files: &[PathBuf],
    format: Option<&Format>,
    log: &mut Counter,
    read_stdin: &mut Reading<'_>,
    after_read: &mut AfterRead<'_>,
) -> anyhow::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    for file in files {
        let mut reader = FileReader {
            file,
            input: input(format),
            after_read: &mut *after_read,
        };
        if is_stdin(file) {
            reader.read(read_stdin, log, &mut buffer)?;
        } else {
            let mut opened = open(file)?;
            let mut read = |buffer: &mut [u8]| read_some(&mut opened, buffer).map(Some);
            reader.read(&mut read, log, &mut buffer)?;
        }
    }
    Ok(())
}

pub(super) fn input(format: Option<&Format>) -> Input {
    Input::new(format.cloned(), decode::Limits::default())
}

pub(super) fn open(file: &Path) -> anyhow::Result<File> {
    let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    if opened.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        bail!("cannot read {}: it is a directory", file.display());
    }
    Ok(opened)
}

/// Reads up to the length of the buffer, and retries interrupted reads. Returns 0 at the end.
pub(super) fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// A file that is being read.
struct FileReader<'a, 'b> {
    file: &'a Path,
    input: Input,
    after_read: &'a mut AfterRead<'b>,
}

impl FileReader<'_, '_> {
    fn read(
        &mut self,
        read: &mut Reading<'_>,
        log: &mut Counter,
        buffer: &mut [u8],
    ) -> anyhow::Result<()> {
        let of_file = || format!("cannot read {}", name(self.file));
        let lines_before = log.settled().lines();
        let mut bytes = 0;
        let decoded = loop {
            let Some(len) = read(buffer).with_context(of_file)? else {
                (self.after_read)(log, 0)?;
                continue;
            };
            if len == 0 {
                break self.input.handle_eof(|event| log.count(event));
            }
            bytes += len as u64;
            let read = &buffer[..len];
            if let Err(error) = self.input.handle_input(read, |event| log.count(event)) {
                // Passes on what was held back until the format is known.
                break self
                    .input
                    .handle_eof(|event| log.count(event))
                    .and(Err(error));
            }
            (self.after_read)(log, len)?;
        };
        let Err(error) = decoded else {
            // A last line without a line feed must not be joined with the first line of the next
            // file.
            log.handle_eof();
            return Ok(());
        };
        let lines = log.settled().lines() - lines_before;
        match Damage::new(name(self.file), &error, bytes, lines).filter(|_| lines > 0) {
            Some(damage) => log.handle_damage(damage),
            None => return Err(error).with_context(of_file),
        }
        Ok(())
    }
}

/// Returns the size of all files in bytes, or `None` if it is unknown, as that of standard input.
pub(super) fn size(files: &[PathBuf]) -> Option<u64> {
    let sizes = files.iter().map(|file| match file.metadata() {
        Ok(metadata) if metadata.is_file() && !is_stdin(file) => Some(metadata.len()),
        _ => None,
    });
    sizes.sum()
}

/// Returns a progress bar on standard error, hidden if that is not a terminal.
fn progress_bar(files: &[PathBuf]) -> ProgressBar {
    let (bar, template) = match size(files) {
        Some(size) => (
            ProgressBar::new(size),
            "{bar:30} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left",
        ),
        None => (
            ProgressBar::new_spinner(),
            "{spinner} {decimal_bytes}, {decimal_bytes_per_sec}",
        ),
    };
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    bar.with_style(style)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::path::Path;

    use linerate_logview::aggregate::Limits;

    use super::{Counter, FileReader, input, read_some};

    #[test]
    fn a_log_is_counted_whatever_the_size_of_the_reads() {
        let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
        let log_text = line.repeat(10);
        for read_bytes in [1, 7, 1_000] {
            let threads = NonZeroUsize::new(2).unwrap();
            let mut log = Counter::with_threads(Limits::default(), threads);
            let (mut rest, mut bytes) = (&log_text[..], 0);
            let mut has_paused = false;
            let mut read = |buffer: &mut [u8]| {
                has_paused ^= true;
                match has_paused {
                    true => Ok(None),
                    false => read_some(&mut rest, buffer).map(Some),
                }
            };
            let mut after_read = |_: &mut Counter, len| {
                bytes += len;
                Ok(())
            };
            let mut reader = FileReader {
                file: Path::new("-"),
                input: input(None),
                after_read: &mut after_read,
            };
            let mut buffer = vec![0; read_bytes];
            reader.read(&mut read, &mut log, &mut buffer).unwrap();
            assert_eq!((log.settled().requests(), bytes), (10, log_text.len()));
        }
    }
}
