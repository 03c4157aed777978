//! The door for other programs that open the folder which this one has open.
//!
//! As long as none comes, it is a socket in the folder and a thread that sleeps at it. With the first that knocks
//! the thread starts a server and ends.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use porpoise_engine::Engine;
use porpoise_server::{InstanceSocket, Server, ServerOptions};
use rustix::event::{PollFd, PollFlags, poll};

/// The thread does next to nothing but to start others.
const STACK_BYTES: usize = 128 << 10;

/// An open door. Dropping it closes it; statements that are under way end first, for three seconds at most.
pub(crate) struct Door {
    server: Arc<Mutex<Option<Server>>>,
    /// Closing it ends the thread's sleep.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    pub fn open(engine: &Engine, folder: &Path) -> std::io::Result<Door> {
        let socket = InstanceSocket::open(folder)?;
        let server = Arc::new(Mutex::new(None));
        let (stop, stopped) = UnixStream::pair()?;
        let (engine, served) = (engine.clone(), server.clone());
        let thread = std::thread::Builder::new()
            .name("door".to_string())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                if !somebody_knocks(&socket, &stopped) {
                    return;
                }
                let options = ServerOptions {
                    instance_socket: Some(Arc::new(socket)),
                    ..ServerOptions::default()
                };
                match Server::start(engine, &options) {
                    Ok(server) => *served.lock() = Some(server),
                    Err(error) => tracing::error!("can't let another program in: {error}"),
                }
            })?;
        Ok(Door {
            server,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// Sleeps until somebody knocks, or until the door is closed: false.
fn somebody_knocks(socket: &InstanceSocket, stopped: &UnixStream) -> bool {
    loop {
        let mut watched = [socket.listener().as_fd(), stopped.as_fd()]
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN));
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => return watched[1].revents().is_empty(),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing to say of how it ended.
            let _ = thread.join();
        }
        drop(self.server.lock().take());
    }
}
