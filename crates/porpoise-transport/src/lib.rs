//! Streams between processes: TCP and Unix sockets. Knows nothing of MySQL.
