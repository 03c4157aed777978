//! `mysql_options()` and what it is told.

use super::with;
use crate::abi::{InfileEnd, InfileError, InfileInit, InfileRead, Mysql, Text};
use crate::failure::{self, Failure};
use crate::infile::Handlers;
use crate::settings::{SSL_CA, SSL_CAPATH, SSL_CERT, SSL_CIPHER, SSL_KEY};
use std::ffi::{c_char, c_int, c_uint, c_void};

pub extern "C" fn mysql_options(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    value: *const c_void,
) -> c_int {
    mysql_options4(mysql, option, value, std::ptr::null())
}

/// C declares it with any number of arguments; they come in the same registers as these.
pub extern "C" fn mysql_optionsv(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    first: *const c_void,
    second: *const c_void,
) -> c_int {
    mysql_options4(mysql, option, first, second)
}

pub extern "C" fn mysql_options4(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    first: *const c_void,
    second: *const c_void,
) -> c_int {
    with(mysql, 1, |handle| {
        handle.mysql.clear_error();
        if !handle.session.settings.set(option, first, second) {
            return Err(Failure::of(failure::NOT_IMPLEMENTED));
        }
        handle.session.settings.publish(&mut handle.mysql.options);
        Ok(0)
    })
}

pub extern "C" fn mysql_get_option(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    value: *mut c_void,
) -> c_int {
    mysql_get_optionv(mysql, option, value)
}

pub extern "C" fn mysql_get_optionv(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    value: *mut c_void,
) -> c_int {
    with(mysql, 1, |handle| {
        match handle.session.settings.get(option, value) {
            true => Ok(0),
            false => Err(Failure::of(failure::NOT_IMPLEMENTED)),
        }
    })
}

pub extern "C" fn mysql_ssl_set(
    mysql: Option<&mut Mysql>,
    key: Text,
    certificate: Text,
    authority: Text,
    authorities: Text,
    cipher: Text,
) -> c_int {
    with(mysql, 1, |handle| {
        let settings = &mut handle.session.settings;
        for (option, value) in [
            (SSL_KEY, key),
            (SSL_CERT, certificate),
            (SSL_CA, authority),
            (SSL_CAPATH, authorities),
            (SSL_CIPHER, cipher),
        ] {
            settings.set(option, value.0.cast(), std::ptr::null());
        }
        settings.tls_set = true;
        settings.publish(&mut handle.mysql.options);
        Ok(0)
    })
}

/// What it is encrypted with; null if it isn't.
pub extern "C" fn mysql_get_ssl_cipher(mysql: Option<&mut Mysql>) -> *const c_char {
    with(mysql, std::ptr::null(), |handle| {
        Ok(handle.session.tls_cipher())
    })
}

pub extern "C" fn mysql_set_local_infile_handler(
    mysql: Option<&mut Mysql>,
    init: Option<InfileInit>,
    read: Option<InfileRead>,
    end: Option<InfileEnd>,
    error: Option<InfileError>,
    user_data: *mut c_void,
) {
    with(mysql, (), |handle| {
        let handlers = match (init, read, end, error) {
            (Some(init), Some(read), Some(end), Some(error)) => Some(Handlers {
                init,
                read,
                end,
                error,
                user_data,
            }),
            _ => None,
        };
        let public = &mut handle.mysql.options;
        public.local_infile_init = init;
        public.local_infile_read = read;
        public.local_infile_end = end;
        public.local_infile_error = error;
        public.local_infile_userdata = user_data;
        handle.session.infile.lock().handlers = handlers;
        Ok(())
    });
}

pub extern "C" fn mysql_set_local_infile_default(mysql: Option<&mut Mysql>) {
    mysql_set_local_infile_handler(mysql, None, None, None, None, std::ptr::null_mut());
}
