//! Any text as a configuration: it is valid, or the error names the position.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::config::{ConfigError, Loader};

// A line `#` is followed by lines with environment variables, and a second one by lines with flags.
fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut parts = text.split("\n#\n");
    let file = parts.next().unwrap_or_default();
    let pairs = |lines: Option<&str>| -> Vec<(String, String)> {
        let lines = lines.unwrap_or_default().lines();
        let pairs = lines.filter_map(|line| line.split_once('='));
        pairs
            .map(|(key, value)| (key.into(), value.into()))
            .collect()
    };
    let mut loader = Loader::new().with_text("linerate.toml", file);
    loader = loader.with_environment(pairs(parts.next()));
    for (key, value) in pairs(parts.next()) {
        loader = loader.with_flag("--flag", &key, value);
    }
    match loader.load() {
        Ok(config) => {
            assert_eq!(loader.load().expect("loading again succeeds"), config);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(
                !matches!(error, ConfigError::Read { .. }),
                "no file was read"
            );
        }
    }
});
