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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

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
    dictionary: Dictionary,
}

/// What is known of the dictionary, whose words are read when passwords are compared with them.
#[derive(Debug, Default)]
pub struct Dictionary {
    read_s: AtomicU64,
    words: AtomicU64,
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
        if installed {
            self.dictionary.words(&self.policy.load().dictionary_file);
        }
    }

    pub(crate) fn set_policy(&self, policy: PasswordPolicy) {
        let policy = Arc::new(policy);
        let before = self.policy.swap(Arc::clone(&policy));
        if self.is_installed() && before.dictionary_file != policy.dictionary_file {
            self.dictionary.words(&policy.dictionary_file);
        }
    }

    /// What SHOW STATUS tells of the dictionary.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Whether a password may be given to an account, by a session of these user names.
    pub fn accepts(&self, password: &str, users: &[&str]) -> bool {
        let policy = self.policy.load();
        !self.is_installed() || {
            !policy.is_user_name(password, users) && policy.accepts(password, &self.dictionary)
        }
    }

    /// VALIDATE_PASSWORD_STRENGTH(): 0, 25, 50, 75 or 100; 0 while the component isn't installed.
    pub fn strength(&self, password: &str, users: &[&str]) -> i64 {
        let policy = self.policy.load();
        if !self.is_installed() || policy.is_user_name(password, users) {
            return 0;
        }
        policy.strength(password, &self.dictionary)
    }
}

/// Whether one is the other, or the other backwards.
fn is_alike(password: &str, name: &str) -> bool {
    !name.is_empty() && (password == name || name.chars().rev().eq(password.chars()))
}

impl Dictionary {
    /// When it was last read, in seconds since 1970; 0: never.
    pub fn read_s(&self) -> u64 {
        self.read_s.load(Ordering::Relaxed)
    }

    /// How many words it had then.
    pub fn word_count(&self) -> u64 {
        self.words.load(Ordering::Relaxed)
    }

    /// Its words. One that can't be read has none, as in MySQL.
    fn words(&self, path: &str) -> HashSet<String> {
        if path.is_empty() {
            self.words.store(0, Ordering::Relaxed);
            return HashSet::new();
        }
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| {
            tracing::warn!("can't read '{path}': {error}");
            String::new()
        });
        let words = text.lines().map(|word| word.trim().to_lowercase());
        let words: HashSet<String> = words
            .filter(|word| WORD_CHARS.contains(&word.chars().count()))
            .collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.read_s
            .store(now.map_or(0, |now| now.as_secs()), Ordering::Relaxed);
        self.words.store(words.len() as u64, Ordering::Relaxed);
        words
    }
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

    fn holds_no_word(&self, password: &str, dictionary: &Dictionary) -> bool {
        let words = dictionary.words(&self.dictionary_file);
        let letters: Vec<char> = password.to_lowercase().chars().collect();
        let lengths = *WORD_CHARS.start()..=letters.len().min(*WORD_CHARS.end());
        let mut parts = lengths.flat_map(|length| letters.windows(length));
        words.is_empty() || !parts.any(|part| words.contains(&part.iter().collect::<String>()))
    }

    fn accepts(&self, password: &str, dictionary: &Dictionary) -> bool {
        self.is_long_enough(password)
            && (self.level < 1 || self.is_mixed(password))
            && (self.level < 2 || self.holds_no_word(password, dictionary))
    }

    fn strength(&self, password: &str, dictionary: &Dictionary) -> i64 {
        if password.chars().count() < *WORD_CHARS.start() {
            0
        } else if !self.is_long_enough(password) {
            25
        } else if !self.is_mixed(password) {
            50
        } else if !self.holds_no_word(password, dictionary) {
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
        let dictionary = Dictionary::default();
        for (password, strength, accepted) in [
            ("abc", 0, [false; 3]),
            ("abcd", 25, [false; 3]),
            ("abcdefgh", 50, [true, false, false]),
            ("Abcdefg1", 50, [true, false, false]),
            ("Abcdef-1", 100, [true; 3]),
        ] {
            assert_eq!(
                policy(0).strength(password, &dictionary),
                strength,
                "{password}"
            );
            let accepts = [0, 1, 2].map(|level| policy(level).accepts(password, &dictionary));
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
        let dictionary = Dictionary::default();
        assert!(!strong.accepts("1-myPorPoise", &dictionary));
        assert_eq!(strong.strength("1-myPorPoise", &dictionary), 75);
        assert!(strong.accepts("1-myPorABCpoise", &dictionary));
        assert!(PasswordPolicy { level: 1, ..strong }.accepts("1-myPorPoise", &dictionary));
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

    #[test]
    fn it_is_known_when_the_dictionary_was_read_and_how_many_words_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words");
        std::fs::write(&file, "porpoise\nabc\ndolphin\nDolphin\n").unwrap();
        let validation = PasswordValidation::default();
        let with_file = |dictionary_file: &str| PasswordPolicy {
            dictionary_file: dictionary_file.into(),
            ..policy(2)
        };
        validation.set_installed(true);
        validation.set_policy(with_file(""));
        let known = || {
            let dictionary = validation.dictionary();
            (dictionary.read_s() > 0, dictionary.word_count())
        };
        assert_eq!(known(), (false, 0));
        validation.set_policy(with_file(file.to_str().unwrap()));
        assert_eq!(known(), (true, 2));
        std::fs::write(&file, "porpoise\ndolphin\nwhale\n").unwrap();
        assert!(!validation.accepts("1-myWhales", &[]));
        assert_eq!(known(), (true, 3));
        validation.set_policy(with_file(""));
        assert_eq!(known(), (true, 0));
    }
}
