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

/// Reads all files in order as one log. Without a `format`, the format of each file is detected.
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
    let mut buffer = vec![0; READ_BYTES];
    for file in files {
        let mut reader = FileReader {
            file,
            input: input(format),
            progress: &progress,
            is_filtered,
        };
        if is_stdin(file) {
            reader.read(&mut io::stdin().lock(), log, &mut buffer)?;
        } else {
            reader.read(&mut open(file)?, log, &mut buffer)?;
        }
    }
    progress.finish_and_clear();
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
struct FileReader<'a> {
    file: &'a Path,
    input: Input,
    progress: &'a ProgressBar,
    is_filtered: bool,
}

impl FileReader<'_> {
    fn read(
        &mut self,
        source: &mut impl Read,
        log: &mut Counter,
        buffer: &mut [u8],
    ) -> anyhow::Result<()> {
        let of_file = || format!("cannot read {}", name(self.file));
        let lines_before = log.settled().lines();
        let mut bytes = 0;
        let decoded = loop {
            let len = read_some(source, buffer).with_context(of_file)?;
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
            if let Some(refusal) = log.refusal().filter(|_| self.is_filtered) {
                bail!(refusal);
            }
            self.progress.inc(len as u64);
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

/// Returns a progress bar on standard error, hidden if that is not a terminal.
fn progress_bar(files: &[PathBuf]) -> ProgressBar {
    let sizes = files.iter().map(|file| match file.metadata() {
        Ok(metadata) if metadata.is_file() && !is_stdin(file) => Some(metadata.len()),
        _ => None,
    });
    let (bar, template) = match sizes.sum::<Option<u64>>() {
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

    use super::{Counter, FileReader, input, progress_bar};

    #[test]
    fn a_log_is_counted_whatever_the_size_of_the_reads() {
        let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
        let log_text = line.repeat(10);
        for read_bytes in [1, 7, 1_000] {
            let threads = NonZeroUsize::new(2).unwrap();
            let mut log = Counter::with_threads(Limits::default(), threads);
            let progress = progress_bar(&[]);
            let mut reader = FileReader {
                file: Path::new("-"),
                input: input(None),
                progress: &progress,
                is_filtered: false,
            };
            let mut buffer = vec![0; read_bytes];
            reader
                .read(&mut &log_text[..], &mut log, &mut buffer)
                .unwrap();
            assert_eq!(
                (log.settled().requests(), progress.position()),
                (10, log_text.len() as u64)
            );
        }
    }
}
