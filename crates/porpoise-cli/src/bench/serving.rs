//! The ways into a server that was started to be measured, and who ends it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use porpoise_client::{Options, Transport};
use porpoise_lab::Target;
use porpoise_lab::serving::{Serving, routes_to};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::peer::PeerServer;
use super::{Failure, WayIn};

/// The server beside, if there is one, then the ways into this one.
pub(super) fn targets(
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
