//! Fails the build if the web pages are missing, and rebuilds the crate when they change.

use std::{env, path::Path, process};

fn main() {
    let dist =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    for page in ["index.html", "logs.html", "report.html", "docs/index.html"] {
        if !dist.join(page).is_file() {
            println!(
                "cargo::error=web pages are not built (web/dist/{page} is missing): run `make web` first"
            );
            process::exit(1);
        }
    }
}
