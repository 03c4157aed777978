//! `porpoise serve` in a temporary folder, as a process of its own; ended when dropped.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use porpoise_client::{Connection, Options, Transport};
use porpoise_lab::Target;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::peer::{PeerServer, routes_to};
use super::{Failure, WayIn};

/// The process.
pub struct Serving {
    child: Child,
    pub port: u16,
    pub socket: PathBuf,
}

impl Serving {
    /// In `folder`, for so many clients, with more of its options.
    pub fn start(folder: &Path, clients: usize, options: &[String]) -> Result<Serving, Failure> {
        let socket = folder.join("porpoise.sock");
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", "--no-defaults", "--port=0", "--loopback-fast-path"])
            .arg(format!("--datadir={}", folder.join("porpoise").display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--max-connections={}", clients + 100))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // A Ctrl-C at the terminal is for who measures.
            .process_group(0)
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no output to read")?;
        let mut serving = Serving {
            child,
            port: 0,
            socket,
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("127.0.0.1:")?.parse().ok());
        serving.port = port.ok_or_else(|| format!("the server doesn't start: {line}"))?;
        Ok(serving)
    }

    /// Logs in as its root.
    pub fn root(&self) -> Result<Connection, porpoise_client::Error> {
        Connection::open(&format!(
            "mysql://root@localhost/?transport=unix&socket={}",
            self.socket.display()
        ))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Nothing in it has to last: the folder goes as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server beside, if there is one, then the ways into this one.
pub fn targets(
    peer: &PeerServer,
    serving: &Serving,
    ways: &[WayIn],
) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    if let Some(options) = peer.unix.clone().or(peer.tcp.clone()) {
        let name = peer.name.into();
        targets.push(Target { name, options });
    }
    let [tcp, unix] = routes_to(serving.port, &serving.socket);
    for way in ways {
        let (name, options) = match way {
            WayIn::Tcp => ("TCP", tcp.clone()),
            WayIn::Unix => ("Unix socket", unix.clone()),
            WayIn::Shm => {
                let transport = Transport::SharedMemory;
                let memory = Options {
                    transport,
                    ..unix.clone()
                };
                ("shared memory", memory)
            }
            WayIn::FastPath => {
                return Err("the fast path is shared memory after the login: measure shm".into());
            }
            WayIn::Embedded => {
                return Err("an embedded program's statements run on its own threads".into());
            }
        };
        let name = name.into();
        targets.push(Target { name, options });
    }
    Ok(targets)
}

/// Who is asked to end takes the servers along: this becomes true, and the second time ends the
/// process.
pub fn ends_when_asked() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}
