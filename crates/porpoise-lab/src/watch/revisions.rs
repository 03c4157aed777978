//! Versions of a server, and how there comes to be one that can be measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::NamedTempFile;

use crate::Error;
use crate::experiment::ServerKind;
use crate::runner::{build, is_program};

/// The variable in which a command finds the revision's name.
const VARIABLE: &str = "REVISION";
/// Lines of a command's words that are told when it fails.
const WORDS: usize = 12;

/// A version of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Its name: a commit, or a program's file name.
    pub name: String,
    /// How there comes to be a server.
    pub source: Source,
}

/// How there comes to be a server of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A program that is there.
    Program(PathBuf),
    /// Built from the commit of a repository of Porpoise's.
    Commit(PathBuf),
    /// By a shell's command, called in a folder: it finds the revision's name in `REVISION`, and its
    /// last line is a program that takes the options of `porpoise serve`, or the URL of a server
    /// that runs.
    Command {
        /// The command.
        command: String,
        /// Where it is called.
        folder: PathBuf,
    },
}

impl Revision {
    /// Builds, or whatever else it takes.
    pub(super) fn server(&self) -> Result<ServerKind, Error> {
        match &self.source {
            Source::Program(program) => Ok(ServerKind::Porpoise(Some(program.clone()))),
            Source::Commit(repository) => {
                build(&self.name, repository)?;
                Ok(ServerKind::Revision {
                    revision: self.name.clone(),
                    repository: repository.clone(),
                })
            }
            Source::Command { command, folder } => prepared(&self.name, command, folder),
        }
    }
}

fn prepared(revision: &str, command: &str, folder: &Path) -> Result<ServerKind, Error> {
    let failed = |what: &str| Error::Plan(format!("'{command}' of {revision}: {what}"));
    // Files, not pipes: a server that it leaves running would keep a pipe open.
    let told_on_output = NamedTempFile::new()?;
    let words = NamedTempFile::new()?;
    let status = Command::new("sh")
        .args(["-c", command])
        .env(VARIABLE, revision)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(told_on_output.reopen()?)
        .stderr(words.reopen()?)
        .status()?;
    if !status.success() {
        let read = |file: &NamedTempFile| std::fs::read(file.path());
        // Some compilers say what is wrong on their output.
        let mut told = String::new();
        for file in [&told_on_output, &words] {
            let text = String::from_utf8_lossy(&read(file)?).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            let last = &lines[lines.len().saturating_sub(WORDS)..];
            told.extend(last.iter().flat_map(|line| [line, "\n"]));
        }
        return Err(failed(&format!("{status}: {}", told.trim_end())));
    }
    let told = String::from_utf8_lossy(&std::fs::read(told_on_output.path())?).into_owned();
    let mut lines = told.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty());
    let last = last.ok_or_else(|| failed("it names neither a program nor a URL"))?;
    if last.starts_with("mysql://") {
        return Ok(ServerKind::Url(last.to_owned()));
    }
    let program = folder.join(last);
    match program.is_file() {
        true => Ok(ServerKind::Porpoise(Some(program))),
        false => Err(failed(&format!("there is no program '{last}'"))),
    }
}

/// The commits of a range, the oldest first, along first parents; with `paths`, those that touch
/// them. Each is built, or made by the command.
pub fn revisions_of(
    repository: &Path,
    range: &str,
    paths: &[String],
    command: Option<&str>,
) -> Result<Vec<Revision>, Error> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args([
            "rev-list",
            "--reverse",
            "--first-parent",
            "--end-of-options",
            range,
            "--",
        ])
        .args(paths)
        .output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Plan(format!("{range}: {}", words.trim())));
    }
    let commits = String::from_utf8_lossy(&output.stdout);
    let source = match command {
        None => Source::Commit(repository.to_owned()),
        Some(command) => Source::Command {
            command: command.to_owned(),
            folder: repository.to_owned(),
        },
    };
    let revision = |commit: &str| Revision {
        name: commit.to_owned(),
        source: source.clone(),
    };
    Ok(commits.lines().map(revision).collect())
}

/// The programs of a folder, in the order of their names: its files that may be executed.
pub fn builds_of(folder: &Path) -> Result<Vec<Revision>, Error> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Error::Plan(format!("{}: {error}", folder.display())))?;
    let mut builds: Vec<Revision> = entries
        .flatten()
        .filter(|entry| is_program(&entry.path()))
        .map(|entry| Revision {
            name: entry.file_name().to_string_lossy().into_owned(),
            source: Source::Program(entry.path()),
        })
        .collect();
    builds.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(builds)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_has_builds_and_other_files() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("b2", 0o755), ("b1", 0o700), ("README", 0o644)] {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let builds = builds_of(folder.path()).unwrap();
        let names: Vec<&str> = builds.iter().map(|build| &*build.name).collect();
        assert_eq!(names, ["b1", "b2"]);
    }

    #[test]
    fn a_command_names_a_program_or_a_server_or_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("built-r7"), "").unwrap();
        let of = |command: &str| prepared("r7", command, folder.path());
        let program = folder.path().join("built-r7");
        assert_eq!(
            of("echo building; echo built-$REVISION; echo").unwrap(),
            ServerKind::Porpoise(Some(program))
        );
        let url = "mysql://root@localhost/?socket=/tmp/s";
        assert_eq!(
            of(&format!("sleep 60 >/dev/null 2>&1 & echo '{url}'; kill $!")).unwrap(),
            ServerKind::Url(url.into())
        );
        for (command, why) in [
            (
                "echo no compiler >&2; exit 7",
                "exit status: 7: no compiler",
            ),
            (
                "echo cannot compile; exit 1",
                "exit status: 1: cannot compile",
            ),
            ("true", "neither a program nor a URL"),
            ("echo built-r8", "no program 'built-r8'"),
        ] {
            let told = of(command).unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        }
    }
}
