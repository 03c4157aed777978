//! A MySQL or MariaDB server to measure beside: started here, or running already.

use std::path::Path;

use porpoise_client::{Options, TlsMode, Transport};
use porpoise_lab::serving::{prepare, routes_to};
use porpoise_lab::{Peer, Target, Way};

use super::Failure;

/// The ways into a server beside; ended with this, if it was started here.
#[derive(Default)]
pub struct PeerServer {
    _process: Option<Peer>,
    /// What the report calls it.
    pub name: &'static str,
    pub tcp: Option<Options>,
    pub unix: Option<Options>,
}

impl PeerServer {
    /// The way into it that is measured beside a way into Porpoise; one that leads nowhere, if its
    /// URL names no such thing, is replaced by the other.
    fn route(&self, way: Way) -> Option<(Way, Options)> {
        let (tcp, unix) = (self.tcp.as_ref(), self.unix.as_ref());
        let way = match way.of_mariadb() {
            Way::Unix if unix.is_none() => Way::Tcp,
            _ if tcp.is_none() => Way::Unix,
            way => way,
        };
        let options = way.route(tcp.or(unix)?, unix.or(tcp)?)?;
        Some((way, options))
    }

    /// The name of the target that a way into Porpoise is compared with.
    pub fn beside(&self, way: Way) -> Option<String> {
        let (way, _) = self.route(way)?;
        Some(format!("{} {way}", self.name))
    }

    /// The ways into it that are measured beside these ways into Porpoise, each once.
    pub fn targets(&self, ways: &[Way]) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for (way, options) in ways.iter().filter_map(|way| self.route(*way)) {
            let name = format!("{} {way}", self.name);
            if !targets.iter().any(|known| known.name == name) {
                targets.push(Target::at(name, options));
            }
        }
        targets
    }

    /// One that runs already, as `mysql://user:password@host:port/schema?socket=/path`: over TCP if
    /// it names a host, over the Unix socket if it names one.
    pub fn at(url: &str) -> Result<PeerServer, Failure> {
        let mut given: Options = url.parse()?;
        // What is compared isn't encrypted, unless the URL says so.
        given.tls.mode.get_or_insert(TlsMode::Disabled);
        let way = |transport| Options {
            transport,
            ..given.clone()
        };
        // Without a socket named there is TCP alone; on localhost, with one named, that alone.
        let has_tcp = given.socket.is_none() || given.host != "localhost";
        Ok(PeerServer {
            _process: None,
            name: "peer",
            tcp: has_tcp.then(|| way(Transport::Tcp)),
            unix: given.socket.is_some().then(|| way(Transport::Unix)),
        })
    }

    /// A MariaDB in `folder` for so many clients, with more of mysqld's options, if it is installed.
    pub fn start(
        folder: &Path,
        clients: usize,
        options: &[String],
    ) -> Result<Option<PeerServer>, Failure> {
        if !Peer::is_installed() {
            return Ok(None);
        }
        let peer = Peer::start(folder, clients, options)?;
        prepare(&mut peer.connect()?, &["localhost", "%"])?;
        let [tcp, unix] = routes_to(peer.port(), peer.socket());
        Ok(Some(PeerServer {
            _process: Some(peer),
            name: "MariaDB",
            tcp: Some(tcp),
            unix: Some(unix),
        }))
    }
}
