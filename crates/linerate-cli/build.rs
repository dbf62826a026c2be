//! Sees to it that the pages are there before they are embedded, and embeds them anew when they change.

use std::{env, path::Path, process};

fn main() {
    let dist =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    for page in ["index.html", "logs.html"] {
        if !dist.join(page).is_file() {
            println!(
                "cargo::error=the pages are not built (no web/dist/{page}): run `make web` first"
            );
            process::exit(1);
        }
    }
}
