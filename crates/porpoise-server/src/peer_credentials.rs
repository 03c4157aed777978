//! The plugin `auth_socket`: a client is known by the operating system's user at the other end of
//! its Unix socket.
//!
//! Source: MySQL 8.4 Reference Manual, "Socket Peer-Credential Pluggable Authentication".

use porpoise_engine::Account;

use crate::stream::Stream;

/// The plugin's name.
pub(crate) const AUTH_SOCKET: &str = "auth_socket";

/// Whether the process at the other end belongs to the operating system's user that the account is
/// for. For `root` that is also the user that runs the server: a user who can read the database's files
/// needs no password to read the database.
pub(crate) fn is_owner(account: &Account, stream: &Stream) -> bool {
    let Some(uid) = stream.peer_uid() else {
        return false;
    };
    let is_root = &*account.user == "root";
    if is_root && (uid == 0 || uid == rustix::process::geteuid().as_raw()) {
        return true;
    }
    !is_root && user_name(uid).is_some_and(|name| name == *account.user)
}

/// The name of an operating system's user, by `/etc/passwd`.
fn user_name(uid: u32) -> Option<String> {
    let uid = uid.to_string();
    std::fs::read_to_string("/etc/passwd")
        .ok()?
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == uid).then(|| name.to_string())
        })
}
