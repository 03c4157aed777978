//! Many connections on one thread: waiting for whichever has a reply.

use crate::{Connection, Error};
use std::time::{Duration, Instant};

/// Waits for replies on several connections, whichever ways they go.
///
/// Statements are sent with [`send_query`](Connection::send_query) and
/// [`send_execute`](Connection::send_execute), any number on each connection; then
/// [`wait`](Self::wait) tells which connections have a reply to be received. Over shared memory
/// nothing is asked of the system while replies come fast.
///
/// ```no_run
/// use porpoise_client::{Connection, Poll};
///
/// let url = "mysql://root@localhost/shop";
/// let mut connections = [Connection::open(url)?, Connection::open(url)?];
/// for connection in &mut connections {
///     connection.send_query("SELECT COUNT(*) FROM fish")?;
/// }
/// let mut poll = Poll::default();
/// while connections.iter().any(|connection| connection.pending() > 0) {
///     for &place in poll.wait(&mut connections, None)? {
///         let rows = connections[place].receive()?.rows()?;
///         println!("{:?}", rows.to_text());
///     }
/// }
/// # Ok::<(), porpoise_client::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Poll {
    streams: porpoise_transport::Poll,
    ready: Vec<usize>,
}

impl Poll {
    /// Waits until one of the connections [has a reply](Connection::has_reply) to be received: the
    /// places of those that have. Sends first what isn't sent. None when `patience` ran out, and
    /// when no reply is due.
    ///
    /// A connection that ended while a reply was due has one, too: receiving tells why. An error of
    /// this call is the system's, or that of a connection which couldn't send and [is
    /// broken](Connection::is_broken).
    pub fn wait<C: AsMut<Connection>>(
        &mut self,
        connections: &mut [C],
        patience: Option<Duration>,
    ) -> Result<&[usize], Error> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        let mut left = patience;
        self.ready.clear();
        let mut awaits_any = false;
        for (place, connection) in connections.iter_mut().enumerate() {
            let connection = connection.as_mut();
            if connection.pending() == 0 {
                continue;
            }
            if !connection.is_broken() {
                connection.flush()?;
            }
            if connection.awaits_reply() {
                awaits_any = true;
            } else {
                self.ready.push(place);
                left = Some(Duration::ZERO);
            }
        }
        if !awaits_any {
            return Ok(&self.ready);
        }
        loop {
            let told = self.streams.wait(
                connections,
                |connection| {
                    let connection = connection.as_mut();
                    connection.awaits_reply().then(|| connection.stream_mut())
                },
                left,
            )?;
            let come = told
                .iter()
                .filter(|&&at| connections[at].as_mut().read_available());
            self.ready.extend(come);
            if !self.ready.is_empty() || left == Some(Duration::ZERO) {
                return Ok(&self.ready);
            }
            left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        }
    }
}
