//! The door between programs that want the same folder.
//!
//! One process has a database's folder open; the others of the same user come to it through a Unix socket in the folder, over
//! which they are given shared memory. They are let in as the program that has the folder is: without account or password,
//! because whoever may read and write the database's files needs none. The socket is its owner's alone (mode 0600), and who
//! connects is asked of the system as well.
//!
//! The socket's file is made by the process that has the folder, so one that is found there was left by a process
//! that died, and is replaced. Folders whose path is too long for a socket's address are reached through `/proc/self/fd`.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "porpoise.sock";
/// The longest path that a Unix socket can have.
const PATH_MAX: usize = 107;

/// Where the socket of a folder is, by a path that fits into a socket's address as long as this lives.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    _folder: Option<File>,
}

impl Place {
    /// In `folder`.
    pub fn of(folder: &Path) -> io::Result<Place> {
        // Relative, it would mean another folder once the process changes its own.
        let path = std::path::absolute(folder)?.join(FILE_NAME);
        if path.as_os_str().len() <= PATH_MAX {
            return Ok(Place {
                path,
                _folder: None,
            });
        }
        let folder = File::open(folder)?;
        Ok(Place {
            path: PathBuf::from(format!("/proc/self/fd/{}/{FILE_NAME}", folder.as_raw_fd())),
            _folder: Some(folder),
        })
    }

    /// To dial or to listen at.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The socket in a folder that this process has open. Its file goes when this does.
#[derive(Debug)]
pub struct Neighbours {
    listener: UnixListener,
    place: Place,
}

impl Neighbours {
    /// Listens in `folder`, which this process must have open.
    pub fn open(folder: &Path) -> io::Result<Neighbours> {
        let place = Place::of(folder)?;
        match fs::remove_file(place.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(place.path())?;
        fs::set_permissions(place.path(), Permissions::from_mode(0o600))?;
        Ok(Neighbours { listener, place })
    }

    /// What it listens with.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = fs::remove_file(self.place.path());
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
        let neighbours = Neighbours::open(folder.path()).unwrap();
        let path = folder.path().join(FILE_NAME);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        UnixStream::connect(&path).unwrap();
        drop(neighbours);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_with_a_long_name_has_a_socket_too() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(120)).join("y".repeat(120));
        fs::create_dir_all(&long).unwrap();
        let neighbours = Neighbours::open(&long).unwrap();
        UnixStream::connect(Place::of(&long).unwrap().path()).unwrap();
        drop(neighbours);
        assert!(!long.join(FILE_NAME).exists());
    }
}
