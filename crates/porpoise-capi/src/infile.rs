//! Files for LOAD DATA LOCAL INFILE: from the program's handlers, or from the file system.
//!
//! ```text
//! server asks for "name" ─► init(name) ─► read … read ─► end          a handler that fails: error() tells why
//! ```

use crate::abi::{InfileEnd, InfileError, InfileInit, InfileRead};
use crate::failure::{self, Failure};
use parking_lot::Mutex;
use porpoise_client::Error;
use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Bytes that are asked for at once.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes of a handler's error message.
const ERROR_BYTES: usize = 512;

#[derive(Clone, Copy)]
pub struct Handlers {
    pub init: InfileInit,
    pub read: InfileRead,
    pub end: InfileEnd,
    pub error: InfileError,
    pub user_data: *mut c_void,
}

// SAFETY: they are called during a call with the MYSQL they were set for, on its thread.
unsafe impl Send for Handlers {}

#[derive(Default)]
pub struct Infile {
    /// None: the file system.
    pub handlers: Option<Handlers>,
    /// What went wrong with the last file; the server only learns that it got no more.
    pub failure: Option<Failure>,
}

/// For a server that asks over a stream.
pub fn source(infile: Arc<Mutex<Infile>>) -> porpoise_client::FileSource {
    Box::new(move |name, piece| match give(&infile, name, piece) {
        Ok(()) => Ok(()),
        Err(failure) => Err(Error::Server {
            number: failure.number as u16,
            sqlstate: failure.sqlstate,
            message: failure.message.into_owned(),
        }),
    })
}

/// For the engine in this process.
pub fn source_in_process(infile: Arc<Mutex<Infile>>) -> porpoise_server::LocalInfileReader {
    Box::new(move |name| {
        let mut content = Vec::new();
        match give(&infile, name, &mut |piece| content.extend_from_slice(piece)) {
            Ok(()) => Ok(content),
            Err(failure) => {
                let message = failure.message.clone().into_owned();
                infile.lock().failure = Some(failure);
                Err(io::Error::other(message))
            }
        }
    })
}

fn give(infile: &Mutex<Infile>, name: &[u8], piece: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
    let handlers = infile.lock().handlers;
    match handlers {
        Some(handlers) => handlers.give(name, piece),
        None => give_file(name, piece),
    }
}

fn give_file(name: &[u8], piece: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
    let shown = String::from_utf8_lossy(name);
    let mut file = std::fs::File::open(std::ffi::OsStr::from_bytes(name)).map_err(|error| {
        let code = error.raw_os_error().unwrap_or(0);
        Failure::new(
            failure::FILE_NOT_FOUND,
            format!("File '{shown}' not found (Errcode: {code})"),
        )
    })?;
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => piece(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(0);
                return Err(Failure::new(
                    failure::FILE_READ,
                    format!("Error reading file '{shown}' (Errcode: {code})"),
                ));
            }
        }
    }
}

impl Handlers {
    fn give(&self, name: &[u8], piece: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let name = CString::new(name).map_err(|_| Failure::of(failure::INVALID_PARAMETER))?;
        let mut file: *mut c_void = std::ptr::null_mut();
        let given = if (self.init)(&mut file, name.as_ptr(), self.user_data) != 0 {
            Err(self.failure(file))
        } else {
            self.give_pieces(file, piece)
        };
        (self.end)(file);
        given
    }

    fn give_pieces(&self, file: *mut c_void, piece: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let mut buffer = vec![0u8; PIECE_BYTES];
        loop {
            let count = (self.read)(file, buffer.as_mut_ptr().cast(), PIECE_BYTES as c_uint);
            match usize::try_from(count) {
                Ok(0) => return Ok(()),
                Ok(count) => piece(buffer.get(..count).unwrap_or(&buffer)),
                Err(_) => return Err(self.failure(file)),
            }
        }
    }

    fn failure(&self, file: *mut c_void) -> Failure {
        let mut message = [0 as c_char; ERROR_BYTES];
        let number = (self.error)(file, message.as_mut_ptr(), ERROR_BYTES as c_uint - 1);
        let bytes = message.map(|byte| byte as u8);
        let text = CStr::from_bytes_until_nul(&bytes)
            .map(|text| text.to_string_lossy().into_owned())
            .unwrap_or_default();
        Failure::new(u32::try_from(number).unwrap_or(failure::UNKNOWN), text)
    }
}
