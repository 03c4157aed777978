//! A client connection to any server that speaks the MySQL protocol.
