//! The Unix socket in the file system.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixListener as StdListener,
    },
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

use super::TakeoverError;

/// A socket on which a process waits for the one that takes over.
#[derive(Debug)]
pub(crate) struct TakeoverSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Where the socket is in the file system; `None` if that is not this process's business.
    place: Option<PathBuf>,
    identity: (u64, u64),
}

impl TakeoverSocket {
    /// Binds the socket in place of one that no process listens on.
    ///
    /// # Errors
    /// Fails if another process listens there, or the path cannot be used.
    pub(crate) fn bind(path: &Path) -> Result<Self, TakeoverError> {
        let owned = || path.to_owned();
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(TakeoverError::NoSocket { path: owned() });
            }
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                return Err(TakeoverError::InUse { path: owned() });
            }
            _ => {}
        }
        let mut socket = Self::bind_beside(path)?;
        match socket.put_in_place() {
            Ok(()) => Ok(socket),
            Err(source) => Err(TakeoverError::Bind {
                path: owned(),
                source,
            }),
        }
    }

    /// Binds the socket, but leaves the one at the path until
    /// [`put_in_place`](Self::put_in_place).
    ///
    /// # Errors
    /// Fails if the path cannot be used.
    pub(super) fn bind_beside(path: &Path) -> Result<Self, TakeoverError> {
        let mut name = OsString::from(path);
        name.push(".new");
        let place = PathBuf::from(name);
        let bind = || {
            // One that a process has left that was killed. Only one takeover is possible at a time.
            match fs::remove_file(&place) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = StdListener::bind(&place)?;
            // Before the socket has its own name. Peers are checked in any case.
            fs::set_permissions(&place, fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            let listener = UnixListener::from_std(listener)?;
            Ok((listener, identity(&place)?))
        };
        let (listener, identity) = bind().map_err(|source| TakeoverError::Bind {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            place: Some(place),
            identity,
        })
    }

    /// Replaces the socket at the path, which no process uses any longer.
    ///
    /// # Errors
    /// Fails if the file system refuses.
    pub(super) fn put_in_place(&mut self) -> io::Result<()> {
        if let Some(place) = &mut self.place
            && *place != self.path
        {
            fs::rename(&*place, &self.path)?;
            place.clone_from(&self.path);
        }
        Ok(())
    }

    /// Leaves the path to another process.
    pub(super) fn leave(&mut self) {
        self.place = None;
    }

    /// Waits for a connection. Cancel-safe.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.listener.accept().await?;
        Ok(stream)
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TakeoverSocket {
    fn drop(&mut self) {
        if let Some(place) = &self.place
            && identity(place).is_ok_and(|found| found == self.identity)
        {
            // At worst it stays, and the next process replaces it.
            _ = fs::remove_file(place);
        }
    }
}

/// Returns what distinguishes a file from one that replaces it.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::{fs::PermissionsExt, net::UnixStream},
    };

    use super::TakeoverSocket;
    use crate::takeover::TakeoverError;

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("takeover.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(UnixStream::connect(&path).is_err(), "it is stale");
        let socket = TakeoverSocket::bind(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        let error = TakeoverSocket::bind(&path).unwrap_err().to_string();
        assert!(error.contains("start with --takeover"), "{error}");
        drop(socket);
        assert!(!path.exists());
        fs::write(&path, "precious").unwrap();
        let error = TakeoverSocket::bind(&path).unwrap_err();
        assert!(matches!(error, TakeoverError::NoSocket { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn the_longest_path_that_a_configuration_may_have_can_be_bound() {
        let folder = tempfile::tempdir().unwrap();
        let room = 103 - folder.path().as_os_str().len() - 1;
        let path = folder.path().join("a".repeat(room));
        let _socket = TakeoverSocket::bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        TakeoverSocket::bind_beside(&folder.path().join("a".repeat(room + 1))).unwrap_err();
    }

    #[tokio::test]
    async fn a_new_socket_replaces_the_old_one_whose_process_then_removes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("takeover.sock");
        let old = TakeoverSocket::bind(&path).unwrap();
        drop(TakeoverSocket::bind_beside(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut new = TakeoverSocket::bind_beside(&path).unwrap();
        new.put_in_place().unwrap();
        drop(old);
        UnixStream::connect(&path).unwrap();
        new.accept().await.unwrap();
        drop(new);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
