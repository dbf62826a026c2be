//! The cost of reading one large message, in instructions counted by callgrind.
//!
//! The cost of a read has a fixed part and a part for each byte. Neither depends on how much of the
//! message was read before, because nothing is copied, searched or validated again. The test counts
//! instructions instead of measuring time, so the results are the same on a busy machine. To see
//! them, run `cargo test -p linerate-proto --test it feed_cost -- --nocapture`.

use std::{env, path::PathBuf, process::Command, sync::OnceLock};

const MIB: u64 = 1 << 20;
/// The sizes of a read in bytes: a single byte, a TCP segment, or a full buffer.
const READS: [u64; 3] = [1, 1_400, 65_536];

/// Returns the example program, built for release. Without valgrind, prints a message and returns
/// `None`.
fn program() -> Option<PathBuf> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(build).clone()
}

fn build() -> Option<PathBuf> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        linerate_testkit::skip("valgrind is not installed");
        return None;
    }
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "--message-format=json"])
        .args(["-p", "linerate-testkit", "--example", "feed"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs this test");
    let messages = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let path = messages.split("\"executable\":\"").nth(1);
    let (path, _) = path
        .and_then(|rest| rest.split_once('"'))
        .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    Some(path.into())
}

/// Counts the instructions that the engine executes for a message that arrives in reads of this
/// size.
fn instructions(program: &PathBuf, kind: &str, message_bytes: u64, read_bytes: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*counted*")
        .arg(program)
        .args([kind, &message_bytes.to_string(), &read_bytes.to_string()])
        .output()
        .expect("valgrind is installed");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    let collected = log.split("Collected :").nth(1).expect("callgrind's total");
    let count = collected.split_whitespace().next().expect("a number");
    count.parse().expect("a number")
}

/// Asserts that the cost per byte depends neither on the size of the message nor, beyond a factor
/// of two, on the size of the reads, and that a read of one byte takes at most `fixed_max`
/// instructions.
///
/// The factor of two cannot hold for reads of one byte: vector code takes a fraction of an
/// instruction per byte, while every call takes several.
fn assert_cost(kind: &str, fixed_max: f64) {
    let Some(program) = program() else { return };
    let [byte, segment, buffer] = READS.map(|read_bytes| {
        let small = instructions(&program, kind, MIB, read_bytes);
        let large = instructions(&program, kind, 16 * MIB, read_bytes);
        let per_byte = large as f64 / (16 * MIB) as f64;
        let per_read = per_byte * read_bytes as f64;
        println!("{kind} in reads of {read_bytes}: {per_byte:.3} a byte, {per_read:.0} a read");
        let growth = large as f64 / (16 * small) as f64;
        assert!(
            (0.99..1.01).contains(&growth),
            "16 times the message costs {growth:.3} times 16 times as much"
        );
        per_byte
    });
    assert!(
        segment < 2.0 * buffer,
        "{kind}: {segment:.3} a byte in segments, {buffer:.3} in full buffers"
    );
    assert!(
        byte < fixed_max,
        "{kind}: {byte:.0} for one byte, at most {fixed_max}"
    );
}

#[test]
fn binary_costs_the_same_per_byte_in_segments_and_in_full_buffers() {
    assert_cost("binary", 100.0);
}

#[test]
fn text_costs_the_same_per_byte_in_segments_and_in_full_buffers() {
    assert_cost("text", 150.0);
}
