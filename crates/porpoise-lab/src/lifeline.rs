//! Ends a server when the program that started it ends without doing so itself: killed, or out of
//! memory. A server left behind would take its share of every later measurement. Likewise removes its
//! temporary folder.
//!
//! ```text
//!   this program ──── a pipe ────► a shell that waits for a line, or for the pipe's end
//!        │                                    │
//!        └──────► the server ◄── SIGKILL ─────┘  the end alone: nobody is left to write the line
//! ```

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// What the shell does about a process.
const WATCH: &str = r#"read line || kill -9 "$0""#;
/// What it does about a folder: servers that write there end at the same time.
const CLEAN: &str = r#"read line || { sleep 1; rm -rf -- "$0"; }"#;

/// A process' life beside this one's. Dropped before the process is waited for, it leaves it alone.
#[derive(Debug)]
pub(crate) struct Lifeline {
    watcher: Option<Child>,
}

impl Lifeline {
    /// Of a child of this process. A machine without a shell has none.
    pub(crate) fn of(child: &Child) -> Self {
        Self::watched(WATCH, child.id().to_string().as_ref())
    }

    fn watched(script: &str, argument: &OsStr) -> Self {
        let watcher = Command::new("/bin/sh")
            .args(["-c", script])
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C at the terminal is for who measures.
            .process_group(0)
            .spawn();
        Self {
            watcher: watcher.ok(),
        }
    }
}

/// A temporary folder, which is removed when this is dropped, and when the program is killed.
#[derive(Debug)]
pub struct WorkFolder {
    // Dropped first.
    folder: TempDir,
    _lifeline: Lifeline,
}

impl WorkFolder {
    /// Makes one whose name begins like this, where temporary files are.
    pub fn new(prefix: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        let lifeline = Lifeline::watched(CLEAN, folder.path().as_os_str());
        Ok(Self {
            folder,
            _lifeline: lifeline,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            if let Some(mut pipe) = watcher.stdin.take() {
                // One that is gone ends nobody.
                let _ = pipe.write_all(b"\n");
            }
            let _ = watcher.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn a_process_is_ended_when_nobody_is_left_to_end_it() {
        use std::os::unix::process::ExitStatusExt;
        let mut child = sleeper();
        let mut lifeline = Lifeline::of(&child);
        // What the system does with the pipes of a program that was killed.
        drop(lifeline.watcher.as_mut().unwrap().stdin.take());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_folder_goes_with_its_program() {
        let mut folder = WorkFolder::new("porpoise-lifeline").unwrap();
        std::fs::write(folder.path().join("file"), "text").unwrap();
        let watcher = folder._lifeline.watcher.as_mut().unwrap();
        drop(watcher.stdin.take());
        watcher.wait().unwrap();
        assert!(!folder.path().exists());

        let folder = WorkFolder::new("porpoise-lifeline").unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_process_that_was_let_go_lives_on() {
        let mut child = sleeper();
        drop(Lifeline::of(&child));
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
