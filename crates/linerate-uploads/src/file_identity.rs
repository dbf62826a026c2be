//! Which file a path refers to.

use std::{fs::File, io, path::Path};

/// Distinguishes a file from all others of the machine, whatever their paths. Keep the file open
/// while its identity is compared with others: a later file may get the identity of a removed one.
#[derive(Debug, Eq, PartialEq)]
pub struct FileIdentity(Id);

/// The device and the inode.
#[cfg(unix)]
type Id = (u64, u64);
/// A handle with the index of the file.
#[cfg(windows)]
type Id = same_file::Handle;

impl FileIdentity {
    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// Returns an error if the system does not tell.
    pub fn of_file(file: &File) -> io::Result<Self> {
        #[cfg(unix)]
        let id = of_metadata(&file.metadata()?);
        #[cfg(windows)]
        let id = Id::from_file(file.try_clone()?)?;
        Ok(Self(id))
    }

    /// Returns the identity of the file that `path` refers to now.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, or the system does not tell.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        #[cfg(unix)]
        let id = of_metadata(&path.metadata()?);
        #[cfg(windows)]
        let id = Id::from_path(path)?;
        Ok(Self(id))
    }
}

#[cfg(unix)]
fn of_metadata(metadata: &std::fs::Metadata) -> Id {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn moved_file_keeps_its_identity() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (path, moved) = (folder.path().join("a"), folder.path().join("b"));
        let file = File::create(&path)?;
        let identity = FileIdentity::of_file(&file)?;
        assert_eq!(FileIdentity::of_path(&path)?, identity);
        fs::rename(&path, &moved)?;
        assert!(FileIdentity::of_path(&path).is_err());
        File::create(&path)?;
        assert_ne!(FileIdentity::of_path(&path)?, identity);
        assert_eq!(FileIdentity::of_path(&moved)?, identity);
        Ok(())
    }
}
