//! The way in without a server, as far as a client knows of it: a stream whose other end is a database in this process.
//!
//! The database is no part of a client. A program that links one says once how a stream to it is opened; from then on
//! `porpoise:///folder` and `transport=embedded` lead to it like any other way in.

use crate::{Error, Options};
use porpoise_transport::Stream;
use std::sync::OnceLock;

/// Opens a stream that speaks the MySQL protocol to the database of [`Options::folder`], or in memory.
pub type Opener = fn(&Options) -> Result<Box<dyn Stream>, Error>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Says how streams to embedded databases are opened. The first to say so is listened to.
pub fn provide(opener: Opener) {
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
