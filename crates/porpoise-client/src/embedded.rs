//! Connections without a server, as far as a client knows of them: streams whose other end is a
//! database in this process.
//!
//! The database is no part of a client. A program that links one sets once how a stream to it is
//! opened; from then on `porpoise:///folder` and `transport=embedded` connect to it like to any
//! server.

use crate::{Error, Options};
use porpoise_transport::Stream;
use std::sync::OnceLock;

/// Opens a stream that speaks the MySQL protocol to the database in [`Options::folder`], or to one
/// in memory.
pub type Opener = fn(&Options) -> Result<Box<dyn Stream>, Error>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Sets how streams to embedded databases are opened. Only the first call has an effect.
pub fn set_opener(opener: Opener) {
    OPENER.get_or_init(|| opener);
}

pub(crate) fn open(options: &Options) -> Result<Box<dyn Stream>, Error> {
    match OPENER.get() {
        Some(open) => open(options),
        None => Err(Error::Unsupported(
            "an embedded database, in a program that has none linked",
        )),
    }
}
