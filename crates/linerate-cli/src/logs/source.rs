//! Reading logs from files and standard input, with a progress bar on a terminal.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use linerate_logview::aggregate::Aggregator;

/// The size of a read.
const READ_BYTES: usize = 256 << 10;

/// Files that begin so are compressed; no line of a log does.
const COMPRESSED: [(&[u8], &str, &str); 4] = [
    (b"\x1F\x8B", "gzip", "gunzip"),
    (b"\x28\xB5\x2F\xFD", "zstd", "unzstd"),
    (b"\xFD7zXZ\0", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
];

/// Reads all files in order as one log.
///
/// # Errors
/// One of them can't be read or is compressed; the error names it.
pub(super) fn read_all(files: &[PathBuf], log: &mut Aggregator) -> anyhow::Result<()> {
    let progress = progress_bar(files);
    let mut buffer = vec![0; READ_BYTES];
    for file in files {
        if is_stdin(file) {
            read(&mut io::stdin().lock(), file, log, &progress, &mut buffer)?;
        } else {
            let mut opened = open(file)?;
            read(&mut opened, file, log, &progress, &mut buffer)?;
        }
        // A last line without a line feed must not run into the next file.
        log.handle_eof();
    }
    progress.finish_and_clear();
    Ok(())
}

/// Returns what to call a file in messages.
pub(super) fn name(file: &Path) -> String {
    if is_stdin(file) {
        "standard input".into()
    } else {
        file.display().to_string()
    }
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == OsStr::new("-")
}

fn open(file: &Path) -> anyhow::Result<File> {
    let opened = File::open(file).with_context(|| format!("can't open {}", file.display()))?;
    if opened.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        bail!("can't read {}: it is a directory", file.display());
    }
    Ok(opened)
}

fn read(
    input: &mut impl Read,
    file: &Path,
    log: &mut Aggregator,
    progress: &ProgressBar,
    buffer: &mut [u8],
) -> anyhow::Result<()> {
    let mut is_beginning = true;
    loop {
        let bytes = match input.read(buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => &buffer[..bytes],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("can't read {}", name(file)));
            }
        };
        if std::mem::take(&mut is_beginning) {
            refuse_compressed(bytes, file)?;
        }
        log.handle_input(bytes);
        progress.inc(bytes.len() as u64);
    }
}

fn refuse_compressed(beginning: &[u8], file: &Path) -> anyhow::Result<()> {
    let found = COMPRESSED
        .iter()
        .find(|(magic, ..)| beginning.starts_with(magic));
    let Some((_, by, unpack)) = found else {
        return Ok(());
    };
    let name = name(file);
    bail!("{name} is compressed by {by}: unpack it first, `{unpack} -c FILE | linerate logs -`")
}

/// Returns a bar on standard error, hidden where that is no terminal.
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
    use std::path::Path;

    use linerate_logview::aggregate::{Aggregator, Limits};

    use super::{name, progress_bar, read, refuse_compressed};

    #[test]
    fn a_log_is_counted_whatever_the_size_of_the_reads() {
        let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
        let input = line.repeat(10);
        for read_bytes in [1, 7, 1_000] {
            let mut log = Aggregator::new(Limits::default());
            let progress = progress_bar(&[]);
            let mut buffer = vec![0; read_bytes];
            read(
                &mut &input[..],
                Path::new("-"),
                &mut log,
                &progress,
                &mut buffer,
            )
            .unwrap();
            assert_eq!(
                (log.requests(), progress.position()),
                (10, input.len() as u64)
            );
        }
    }

    #[test]
    fn compressed_files_are_told_from_logs() {
        let refused = |beginning: &[u8]| {
            let result = refuse_compressed(beginning, Path::new("a.log.gz"));
            result.err().map(|error| error.to_string())
        };
        assert_eq!(refused(b"192.0.2.7 - - ["), None);
        assert_eq!(refused(b"B"), None);
        for (beginning, unpack) in [
            (&b"\x1F\x8B\x08"[..], "`gunzip -c"),
            (b"\x28\xB5\x2F\xFD\0", "`unzstd -c"),
            (b"\xFD7zXZ\0\0", "`unxz -c"),
            (b"BZh91AY&SY", "`bunzip2 -c"),
        ] {
            let error = refused(beginning).unwrap();
            assert!(error.starts_with("a.log.gz is compressed by ") && error.contains(unpack));
        }
    }

    #[test]
    fn standard_input_has_a_name() {
        assert_eq!(name(Path::new("-")), "standard input");
        assert_eq!(name(Path::new("./-")), "./-");
    }
}
