//! The listener for other programs that open the folder which this one has open.
//!
//! As long as no other program comes, it is a socket in the folder and a thread that sleeps until
//! somebody connects to it. At the first connection the thread starts a server, which takes the
//! socket over, and ends.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use porpoise_engine::Engine;
use porpoise_server::{InstanceSocket, Server, ServerOptions};
use rustix::event::{PollFd, PollFlags, poll};

/// The thread does next to nothing but start others.
const STACK_BYTES: usize = 128 << 10;

/// Listens until it is dropped; then statements of other programs that are under way are
/// interrupted.
pub(crate) struct InstanceListener {
    server: Arc<Mutex<Option<Server>>>,
    /// Closing it ends the thread's sleep.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl InstanceListener {
    pub fn open(engine: &Engine, folder: &Path) -> std::io::Result<InstanceListener> {
        let instance_socket = InstanceSocket::open(folder)?;
        let server = Arc::new(Mutex::new(None));
        let (stop, stopped) = UnixStream::pair()?;
        let (engine, served) = (engine.clone(), server.clone());
        let thread = std::thread::Builder::new()
            .name("instance".to_string())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                if !wait_for_connection(&instance_socket, &stopped) {
                    return;
                }
                let options = ServerOptions {
                    instance_socket: Some(Arc::new(instance_socket)),
                    ..ServerOptions::default()
                };
                match Server::start(engine, &options) {
                    Ok(server) => *served.lock() = Some(server),
                    Err(error) => tracing::error!("can't let another program in: {error}"),
                }
            })?;
        Ok(InstanceListener {
            server,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// Sleeps until somebody connects, or until the listener is dropped: false.
fn wait_for_connection(instance_socket: &InstanceSocket, stopped: &UnixStream) -> bool {
    loop {
        let mut watched = [instance_socket.listener().as_fd(), stopped.as_fd()]
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN));
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => return watched[1].revents().is_empty(),
        }
    }
}

impl Drop for InstanceListener {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // How the thread ended doesn't matter.
            let _ = thread.join();
        }
        drop(self.server.lock().take());
    }
}
