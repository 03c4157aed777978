//! Whether passwords are good enough: the component `validate_password`.
//!
//! While it is installed, a password that an account is given in clear has to satisfy the policy
//! (1819), and the variables `validate_password.*` exist. What a policy asks for, each on top of
//! the one before:
//!
//! | policy | asks for |
//! | --- | --- |
//! | LOW | a length |
//! | MEDIUM | digits, letters in both cases, other characters |
//! | STRONG | no word of the dictionary in it |
//!
//! MySQL 8.4 manual, 8.4.3 (The Password Validation Component).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use hashbrown::HashSet;

/// The component's name in INSTALL COMPONENT.
pub const COMPONENT: &str = "file://component_validate_password";
/// What its variables' names begin with.
pub const VARIABLE_PREFIX: &str = "validate_password.";

/// Words of the dictionary have so many characters; shorter and longer ones don't count.
const WORD_CHARS: std::ops::RangeInclusive<usize> = 4..=100;

/// Shared by all sessions of a database.
#[derive(Debug, Default)]
pub struct PasswordValidation {
    installed: AtomicBool,
    policy: ArcSwap<PasswordPolicy>,
}

/// The values of the component's variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PasswordPolicy {
    /// Passwords are compared with user names.
    pub check_user_name: bool,
    /// In characters.
    pub length: u64,
    /// Letters in lower case, and as many in upper case.
    pub mixed_case: u64,
    /// Digits.
    pub numbers: u64,
    /// Characters that are neither letters nor digits.
    pub special: u64,
    /// 0: LOW, 1: MEDIUM, 2: STRONG.
    pub level: u64,
    /// The path of the words that no password may hold, one a line; empty: none.
    pub dictionary_file: String,
}

impl PasswordValidation {
    /// Whether the component is installed.
    pub fn is_installed(&self) -> bool {
        self.installed.load(Ordering::Relaxed)
    }

    /// INSTALL and UNINSTALL COMPONENT.
    pub fn set_installed(&self, installed: bool) {
        self.installed.store(installed, Ordering::Relaxed);
    }

    pub(crate) fn set_policy(&self, policy: PasswordPolicy) {
        self.policy.store(Arc::new(policy));
    }

    /// Whether a password may be given to an account, by a session of these user names.
    pub fn accepts(&self, password: &str, users: &[&str]) -> bool {
        let policy = self.policy.load();
        !self.is_installed() || (!policy.is_user_name(password, users) && policy.accepts(password))
    }

    /// VALIDATE_PASSWORD_STRENGTH(): 0, 25, 50, 75 or 100; 0 while the component isn't installed.
    pub fn strength(&self, password: &str, users: &[&str]) -> i64 {
        let policy = self.policy.load();
        if !self.is_installed() || policy.is_user_name(password, users) {
            return 0;
        }
        policy.strength(password)
    }
}

/// Whether one is the other, or the other backwards.
fn is_alike(password: &str, name: &str) -> bool {
    !name.is_empty() && (password == name || name.chars().rev().eq(password.chars()))
}

impl PasswordPolicy {
    /// `validate_password.length`, or as many as the other numbers ask for.
    fn least_chars(&self) -> u64 {
        let others = self.numbers + self.special + 2 * self.mixed_case;
        self.length.max(others)
    }

    fn is_user_name(&self, password: &str, users: &[&str]) -> bool {
        self.check_user_name && users.iter().any(|name| is_alike(password, name))
    }

    fn is_long_enough(&self, password: &str) -> bool {
        password.chars().count() as u64 >= self.least_chars()
    }

    fn is_mixed(&self, password: &str) -> bool {
        let count = |is: fn(&char) -> bool| password.chars().filter(is).count() as u64;
        count(|c| c.is_ascii_digit()) >= self.numbers
            && count(|c| c.is_lowercase()) >= self.mixed_case
            && count(|c| c.is_uppercase()) >= self.mixed_case
            && count(|c| !c.is_alphanumeric()) >= self.special
    }

    /// A dictionary that can't be read has no words, as in MySQL.
    fn words(&self) -> HashSet<String> {
        if self.dictionary_file.is_empty() {
            return HashSet::new();
        }
        let text = match std::fs::read_to_string(&self.dictionary_file) {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!("can't read '{}': {error}", self.dictionary_file);
                return HashSet::new();
            }
        };
        let words = text.lines().map(|word| word.trim().to_lowercase());
        words
            .filter(|word| WORD_CHARS.contains(&word.chars().count()))
            .collect()
    }

    fn holds_no_word(&self, password: &str) -> bool {
        let words = self.words();
        let letters: Vec<char> = password.to_lowercase().chars().collect();
        let lengths = *WORD_CHARS.start()..=letters.len().min(*WORD_CHARS.end());
        let mut parts = lengths.flat_map(|length| letters.windows(length));
        words.is_empty() || !parts.any(|part| words.contains(&part.iter().collect::<String>()))
    }

    fn accepts(&self, password: &str) -> bool {
        self.is_long_enough(password)
            && (self.level < 1 || self.is_mixed(password))
            && (self.level < 2 || self.holds_no_word(password))
    }

    fn strength(&self, password: &str) -> i64 {
        if password.chars().count() < *WORD_CHARS.start() {
            0
        } else if !self.is_long_enough(password) {
            25
        } else if !self.is_mixed(password) {
            50
        } else if !self.holds_no_word(password) {
            75
        } else {
            100
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(level: u64) -> PasswordPolicy {
        PasswordPolicy {
            check_user_name: true,
            length: 8,
            mixed_case: 1,
            numbers: 1,
            special: 1,
            level,
            dictionary_file: String::new(),
        }
    }

    #[test]
    fn each_policy_asks_for_more() {
        for (password, strength, accepted) in [
            ("abc", 0, [false; 3]),
            ("abcd", 25, [false; 3]),
            ("abcdefgh", 50, [true, false, false]),
            ("Abcdefg1", 50, [true, false, false]),
            ("Abcdef-1", 100, [true; 3]),
        ] {
            assert_eq!(policy(0).strength(password), strength, "{password}");
            let accepts = [0, 1, 2].map(|level| policy(level).accepts(password));
            assert_eq!(accepts, accepted, "{password}");
        }
    }

    #[test]
    fn words_of_the_dictionary_are_found_in_any_case() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words");
        std::fs::write(&file, "porpoise\nabc\n").unwrap();
        let strong = PasswordPolicy {
            dictionary_file: file.to_str().unwrap().into(),
            ..policy(2)
        };
        assert!(!strong.accepts("1-myPorPoise"));
        assert_eq!(strong.strength("1-myPorPoise"), 75);
        assert!(strong.accepts("1-myPorABCpoise"));
        assert!(PasswordPolicy { level: 1, ..strong }.accepts("1-myPorPoise"));
    }

    #[test]
    fn a_user_name_is_no_password_forwards_or_backwards() {
        let validation = PasswordValidation::default();
        validation.set_policy(policy(0));
        let accepts = |password| validation.accepts(password, &["Marianne", ""]);
        assert!(accepts("Marianne"));
        validation.set_installed(true);
        assert!(!accepts("Marianne") && !accepts("ennairaM") && accepts("marianne"));
        assert!(!accepts(""));
    }
}
