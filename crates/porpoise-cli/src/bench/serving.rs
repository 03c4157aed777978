//! The ways into a server that was started to be measured, and who ends it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use porpoise_lab::serving::{Serving, routes_to};
use porpoise_lab::{Peer, Target, Way};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Failure;
use super::peer::PeerServer;
use crate::ways::WayIn;

/// The server beside, if there is one, then the ways into this one.
pub(super) fn targets(
    peer: &PeerServer,
    serving: &Serving,
    ways: &[WayIn],
) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    if let Some(options) = peer.unix.clone().or(peer.tcp.clone()) {
        targets.push(Target::at(peer.name, options));
    }
    let beside = (!targets.is_empty()).then_some(peer.name);
    let [tcp, unix] = routes_to(serving.port, &serving.socket);
    for WayIn(way) in ways {
        let options = match way {
            Way::FastPath => {
                return Err("the fast path is shared memory after the login: measure shm".into());
            }
            way => way.route(&tcp, &unix),
        };
        let options = options.ok_or("an embedded program's statements run on its own threads")?;
        targets.push(Target::at(way.to_string(), options).compared_with(beside));
    }
    Ok(targets)
}

/// Whether a MariaDB is to be measured beside, for experiments that start it again and again.
pub(super) fn has_startable_peer(peer: Option<&Option<String>>) -> Result<bool, Failure> {
    match peer {
        None => Ok(false),
        Some(Some(_)) => Err(
            "a server that runs already can't be killed and started again: --peer without              a URL starts a MariaDB"
                .into(),
        ),
        Some(None) if Peer::is_installed() => Ok(true),
        Some(None) => Err("MariaDB (mariadbd), to measure beside, is not installed".into()),
    }
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
