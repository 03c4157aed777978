//! How many connections each account has, where that is limited.
//!
//! `max_user_connections` is the most that any account may have at a time (MySQL 8.4 manual, 8.2.21). As in MySQL, connections
//! are counted from when there is a limit: while there is none, logging in touches nothing that others touch.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use porpoise_engine::Account;
use porpoise_engine::Error;

type Whose = (String, String);

/// The connections of each account that were counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserSeats(Arc<Mutex<HashMap<Whose, u64>>>);

/// One of an account's connections. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct UserSeat {
    seats: UserSeats,
    whose: Whose,
}

impl UserSeats {
    /// A place for one more connection of the account, of `most`; 0 for any number, which isn't counted.
    ///
    /// # Errors
    /// 1203 when it has as many already.
    pub fn take(&self, account: &Account, most: u64) -> Result<Option<UserSeat>, Error> {
        if most == 0 {
            return Ok(None);
        }
        let whose = (account.user.to_string(), account.host.to_string());
        let mut seats = self.0.lock();
        let taken = seats.entry(whose.clone()).or_default();
        if *taken >= most {
            return Err(Error::too_many_user_connections(&account.user));
        }
        *taken += 1;
        Ok(Some(UserSeat {
            seats: self.clone(),
            whose,
        }))
    }
}

impl Drop for UserSeat {
    fn drop(&mut self) {
        let mut seats = self.seats.0.lock();
        if let Some(taken) = seats.get_mut(&self.whose) {
            *taken -= 1;
            if *taken == 0 {
                seats.remove(&self.whose);
            }
        }
    }
}
