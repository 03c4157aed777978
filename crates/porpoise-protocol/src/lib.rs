//! The MySQL wire protocol, both ends, without I/O: bytes in, events out.
