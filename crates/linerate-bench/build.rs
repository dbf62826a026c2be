//! Finds the source files of the contenders' kernels, which are private, where Cargo unpacked them.
//!
//! The benchmark `kernels` compiles them unchanged. The repository contains no copy of them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "contenders")]
    contenders::write_modules();
}

#[cfg(feature = "contenders")]
mod contenders {
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::{env, fs};

    use serde_json::Value;

    /// Name of the module, name of the package, and path of the file in the package.
    const FILES: [[&str; 3]; 2] = [
        ["tokio_websockets", "tokio-websockets", "src/mask.rs"],
        ["tungstenite", "tungstenite", "src/protocol/frame/mask.rs"],
    ];

    /// Writes a file with one module per contender, which the benchmark includes.
    pub(super) fn write_modules() {
        let metadata = metadata();
        let modules: String = FILES
            .iter()
            .map(|[module, package, file]| {
                let path = package_dir(&metadata, package).join(file);
                println!("cargo::rerun-if-changed={}", path.display());
                format!("#[path = {path:?}]\npub mod {module};\n")
            })
            .collect();
        let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
        fs::write(out_dir.join("contenders.rs"), modules).expect("OUT_DIR can be written to");
    }

    /// Asks Cargo for the packages that it resolved and their locations.
    fn metadata() -> Value {
        let cargo = env::var_os("CARGO").expect("Cargo sets it");
        let target = env::var("TARGET").expect("Cargo sets it");
        let output = Command::new(cargo)
            .args(["metadata", "--format-version=1", "--features=contenders"])
            .args(["--filter-platform", &target])
            .output()
            .expect("Cargo can be run");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).expect("Cargo prints JSON")
    }

    /// Returns the directory that contains a package's manifest.
    fn package_dir(metadata: &Value, name: &str) -> PathBuf {
        let packages = metadata["packages"]
            .as_array()
            .expect("metadata lists packages");
        let manifest = packages
            .iter()
            .find(|package| package["name"] == name)
            .and_then(|package| package["manifest_path"].as_str())
            .unwrap_or_else(|| panic!("{name} is not among the dependencies"));
        Path::new(manifest)
            .parent()
            .expect("a manifest is in a directory")
            .to_owned()
    }
}
