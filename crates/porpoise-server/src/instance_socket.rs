//! The socket by which other processes reach the instance that has a database's folder open.
//!
//! One process has the folder open; other processes of the same user connect to it through a Unix
//! socket in the folder, over which they are given shared memory. They are let in as the program
//! that has the folder is: without account or password, because a process that may read and write
//! the database's files needs none. Only the socket's owner may use it (mode 0600), and the system
//! is asked which user connects as well.
//!
//! The process that has the folder makes the socket's file, so one that is found there was left by
//! a process that died, and is replaced. A folder whose path is too long for a socket's address is
//! reached through `/proc/self/fd`.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "porpoise.sock";
/// The longest path that a Unix socket can have.
const PATH_MAX: usize = 107;

/// The path of a folder's instance socket. It fits into a socket's address, and is valid while this
/// lives.
#[derive(Debug)]
pub struct InstanceSocketPath {
    path: PathBuf,
    /// Open where the path goes through `/proc/self/fd`.
    _folder: Option<File>,
}

impl InstanceSocketPath {
    /// The path of the socket in `folder`.
    ///
    /// # Errors
    /// If the current folder of the process is unknown, or a folder of a long path can't be
    /// opened.
    pub fn in_folder(folder: &Path) -> io::Result<InstanceSocketPath> {
        // Relative, it would mean another folder once the process changes its own.
        let path = std::path::absolute(folder)?.join(FILE_NAME);
        if path.as_os_str().len() <= PATH_MAX {
            return Ok(InstanceSocketPath {
                path,
                _folder: None,
            });
        }
        let folder = File::open(folder)?;
        Ok(InstanceSocketPath {
            path: PathBuf::from(format!("/proc/self/fd/{}/{FILE_NAME}", folder.as_raw_fd())),
            _folder: Some(folder),
        })
    }

    /// The path to connect to, or to listen at.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The listening socket in a folder that this process has open. Dropping it removes the socket's
/// file.
#[derive(Debug)]
pub struct InstanceSocket {
    listener: UnixListener,
    path: InstanceSocketPath,
}

impl InstanceSocket {
    /// Listens in `folder`, which this process must have open.
    ///
    /// # Errors
    /// If a socket that another process has left can't be removed, or the socket can't be made.
    pub fn open(folder: &Path) -> io::Result<InstanceSocket> {
        let path = InstanceSocketPath::in_folder(folder)?;
        match fs::remove_file(path.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path.path())?;
        fs::set_permissions(path.path(), Permissions::from_mode(0o600))?;
        Ok(InstanceSocket { listener, path })
    }

    /// The blocking listener.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for InstanceSocket {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = fs::remove_file(self.path.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_socket_is_its_owners_alone_and_goes_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        drop(UnixListener::bind(folder.path().join(FILE_NAME)).unwrap());
        let socket = InstanceSocket::open(folder.path()).unwrap();
        let path = folder.path().join(FILE_NAME);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        UnixStream::connect(&path).unwrap();
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_with_a_long_name_has_a_socket_too() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(120)).join("y".repeat(120));
        fs::create_dir_all(&long).unwrap();
        let socket = InstanceSocket::open(&long).unwrap();
        UnixStream::connect(InstanceSocketPath::in_folder(&long).unwrap().path()).unwrap();
        drop(socket);
        assert!(!long.join(FILE_NAME).exists());
    }
}
