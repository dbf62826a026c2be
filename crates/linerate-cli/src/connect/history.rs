//! The file with the lines that were typed at earlier prompts.

use std::{
    env,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// How many lines are stored.
pub(super) const LINES_MAX: usize = 1_000;

/// The longest line that is stored, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 4_096;

/// Returns the file of the history: in the user's directory for state, as the XDG Base Directory
/// Specification defines it. `None` if there is no such directory.
pub(super) fn path() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    // "If an implementation encounters a relative path [...] it should consider the path invalid
    // and ignore it."
    let state = state.filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(env::home_dir()?.join(".local/state")))?;
    Some(state.join("linerate").join("connect-history"))
}

/// Creates the file, which only the user can read, unless it exists.
///
/// # Errors
/// Returns an error if the file cannot be created or its permissions cannot be changed.
pub(super) fn create(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(directory)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::create;

    #[test]
    fn only_the_user_can_read_the_history() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("state/linerate/history");
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        create(&file).unwrap();
        assert_eq!(mode(), 0o600);
        fs::write(&file, "hi\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        create(&file).unwrap();
        assert_eq!(mode(), 0o600);
        assert_eq!(fs::read_to_string(&file).unwrap(), "hi\n");
        assert!(create(&file.join("below")).is_err());
    }
}
