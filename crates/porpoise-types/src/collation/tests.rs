use super::*;
use proptest::prelude::*;
use std::convert::Infallible;

fn by_name(name: &str) -> Collation {
    Collation::by_name(name).unwrap()
}

fn key(c: Collation, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    c.sort_key(text.as_bytes(), &mut out);
    out
}

fn check(name: &str, a: &str, b: &str, expected: Ordering) {
    let c = by_name(name);
    assert_eq!(
        c.compare(a.as_bytes(), b.as_bytes()),
        expected,
        "{name}: {a:?} {b:?}"
    );
    assert_eq!(
        key(c, a).cmp(&key(c, b)),
        expected,
        "{name}: keys of {a:?} {b:?}"
    );
}

/// From the MySQL 8.4 manual, 12.10, and Unicode's collation charts.
#[test]
fn facts_about_0900() {
    use Ordering::*;
    let facts = [
        ("utf8mb4_0900_ai_ci", "résumé", "Resume", Equal),
        ("utf8mb4_0900_ai_ci", "a", "a ", Less),
        ("utf8mb4_0900_ai_ci", "ß", "ss", Equal),
        ("utf8mb4_0900_ai_ci", "Æ", "ae", Equal),
        ("utf8mb4_0900_ai_ci", "_", "a", Less),
        ("utf8mb4_0900_ai_ci", "9", "a", Less),
        ("utf8mb4_0900_ai_ci", "z", "α", Less),
        ("utf8mb4_0900_ai_ci", "a\u{1}b", "ab", Equal),
        ("utf8mb4_0900_ai_ci", "\u{1F37A}", "\u{1F363}", Greater),
        ("utf8mb4_0900_ai_ci", "日本", "日本語", Less),
        (
            "utf8mb4_0900_ai_ci",
            "한글",
            "\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}",
            Equal,
        ),
        ("utf8mb4_0900_ai_ci", "l·", "ŀ", Equal),
        ("utf8mb4_0900_ai_ci", "l", "l·", Equal),
        ("utf8mb4_0900_ai_ci", "12345678l", "12345678l·", Equal),
        ("utf8mb4_0900_as_ci", "é", "e", Greater),
        ("utf8mb4_0900_as_ci", "é", "É", Equal),
        ("utf8mb4_0900_as_cs", "a", "A", Less),
        ("utf8mb4_0900_as_cs", "é", "e\u{301}", Equal),
        ("utf8mb4_0900_as_cs", "Ab", "aC", Less),
        ("utf8mb4_0900_bin", "a", "B", Greater),
        ("utf8mb4_0900_bin", "a\0", "a", Greater),
    ];
    for (name, a, b, expected) in facts {
        check(name, a, b, expected);
        check(name, b, a, expected.reverse());
    }
}

/// Checked on MariaDB 10.11.
#[test]
fn facts_about_older_collations() {
    use Ordering::*;
    let facts = [
        ("utf8mb4_general_ci", "a", "a   ", Equal),
        ("utf8mb4_general_ci", "a\t", "a", Less),
        ("utf8mb4_general_ci", "ß", "s", Equal),
        ("utf8mb4_general_ci", "ß", "ss", Less),
        ("utf8mb4_general_ci", "Ä", "a", Equal),
        ("utf8mb4_general_ci", "\u{1F37A}", "\u{1F363}", Equal),
        ("utf8mb4_general_ci", "_", "a", Greater),
        ("utf8mb4_unicode_ci", "ß", "ss", Equal),
        ("utf8mb4_unicode_ci", "a", "a ", Equal),
        ("utf8mb4_unicode_ci", "a\t", "a", Less),
        ("utf8mb4_unicode_ci", "a b", "a", Greater),
        ("utf8mb4_bin", "a", "a ", Equal),
        ("utf8mb4_bin", "a", "A", Greater),
        ("latin1_swedish_ci", "ä", "æ", Equal),
        ("latin1_swedish_ci", "å", "ä", Less),
        ("latin1_swedish_ci", "ü", "y", Equal),
        ("latin1_swedish_ci", "z", "å", Less),
        ("latin1_general_ci", "ä", "a", Greater),
        ("latin1_general_ci", "Ä", "ä", Equal),
        ("latin1_general_ci", "b", "ä", Greater),
        ("latin1_bin", "a", "b", Less),
        ("ascii_general_ci", "ABC", "abc", Equal),
        ("binary", "a", "a ", Less),
    ];
    for (name, a, b, expected) in facts {
        check(name, a, b, expected);
        check(name, b, a, expected.reverse());
    }
}

#[test]
fn names_numbers_and_defaults_agree() {
    for c in Collation::all() {
        assert_eq!(by_name(c.name()), c);
        assert!(c.name().starts_with(c.charset().name()));
    }
    assert_eq!(Collation::all().count(), COLLATIONS.len());
    for charset in Charset::ALL {
        assert!(charset.default_collation().is_default());
        assert_eq!(Charset::by_name(charset.name()), Some(charset));
    }
    assert_eq!(by_name("UTF8_general_ci"), Collation::UTF8MB3_GENERAL_CI);
    assert_eq!(Collation::by_name("žluť"), None);
}

#[test]
fn like_matches_as_in_the_manual() {
    let ci = Collation::UTF8MB4_0900_AI_CI;
    let yes = |text: &str, pattern: &str| like(text.as_bytes(), pattern.as_bytes(), Some('\\'), ci);
    assert!(yes("David!", "David_"));
    assert!(yes("David!", "%D%v%"));
    assert!(!yes("David!", "David\\_"));
    assert!(yes("David_", "David\\_"));
    assert!(yes("ABC", "abc"));
    assert!(yes("", "%") && yes("", "") && !yes("", "_"));
    assert!(!yes("a ", "a"));
    assert!(yes("mississippi", "%iss%ip%i"));
    assert!(!yes("mississippi", "%iss%ipx%"));
    assert!(yes("žluťoučký", "zlu_o%"));
    assert!(!yes("ß", "ss"));
    assert!(!like(b"abc", b"ABC", None, Collation::UTF8MB4_BIN));
    assert!(like("ž".as_bytes(), b"__", None, Collation::BINARY));
    assert!(like(b"David_", b"David|_", Some('|'), ci));
    assert!(like(b"a\\", b"a\\", Some('\\'), ci));
}

#[test]
fn find_counts_bytes() {
    let ci = Collation::UTF8MB4_0900_AI_CI;
    let find = |text: &[u8], needle: &[u8], from| {
        let check = || Ok::<(), Infallible>(());
        ci.find(text, needle, from, check).unwrap()
    };
    assert_eq!(find("xÉé".as_bytes(), b"e", 0), Some(1..3));
    assert_eq!(find("xÉé".as_bytes(), b"e", 3), Some(3..5));
    assert_eq!(find(b"abc", b"", 3), Some(3..3));
    assert_eq!(find(b"abc", b"d", 0), None);
}

#[test]
fn case_maps_one_character_to_one() {
    let c = Collation::UTF8MB4_0900_AI_CI;
    assert_eq!(c.upper("straße ñ"), "STRAßE Ñ");
    assert_eq!(c.lower("İÀ"), "ià");
    assert_eq!(Collation::BINARY.upper("abc"), "abc");
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(" ".to_string()),
        Just("  ".to_string()),
        Just("\t".to_string()),
        Just("\0".to_string()),
        Just("l·".to_string()),
        Just("l".to_string()),
        Just("abcdefgh".to_string()),
        Just("ß".to_string()),
        Just("é".to_string()),
        Just("E".to_string()),
        Just("e\u{301}".to_string()),
        Just("日".to_string()),
        prop_oneof![
            "ch", "ll", "aa", "dz", "zs", "ű", "å", "a\u{30a}", "ộ", "þ", "lj", "ǆ"
        ]
        .prop_map(String::from),
        Just("한".to_string()),
        Just("เก".to_string()),
        "[a-bA-B]",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|v| v.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn keys_order_as_texts_compare(a in text(), b in text()) {
        for c in Collation::all() {
            let (mut ka, kb) = (key(c, &a), key(c, &b));
            prop_assert_eq!(ka.cmp(&kb), c.compare(a.as_bytes(), b.as_bytes()), "{:?} {:?} {:?} {:?} {:?}", c, a, b, ka, kb);
            prop_assert_eq!(c.compare(a.as_bytes(), b.as_bytes()), c.compare(b.as_bytes(), a.as_bytes()).reverse());
            let n = ka.len();
            ka.extend_from_slice(&kb);
            prop_assert_eq!(c.sort_key_len(&ka), Some(n));
        }
    }

    #[test]
    fn a_prefix_begins_the_keys_of_what_it_begins(a in text(), b in text()) {
        for c in Collation::all() {
            let mut prefix = Vec::new();
            c.sort_key_prefix(a.as_bytes(), &mut prefix);
            let whole = key(c, &format!("{a}{b}"));
            prop_assert!(whole.starts_with(&prefix), "{:?} {:?} {:?}: {:?} {:?}", c, a, b, prefix, whole);
        }
    }

    #[test]
    fn invalid_utf8_is_compared_too(a in proptest::collection::vec(any::<u8>(), 0..6), b in proptest::collection::vec(any::<u8>(), 0..6)) {
        for c in Collation::all() {
            let (mut ka, mut kb) = (Vec::new(), Vec::new());
            c.sort_key(&a, &mut ka);
            c.sort_key(&b, &mut kb);
            prop_assert_eq!(ka.cmp(&kb), c.compare(&a, &b));
            like(&a, &b, Some('\\'), c);
        }
    }
}

#[test]
fn languages_order_their_letters() {
    let sorted = |name: &str, words: &str| {
        let collation = Collation::by_name(name).unwrap();
        let mut sorted: Vec<&str> = words.split(' ').rev().collect();
        sorted.sort_by(|a, b| collation.compare(a.as_bytes(), b.as_bytes()));
        assert_eq!(sorted.join(" "), words, "{name}");
    };
    sorted("utf8mb4_sv_0900_as_cs", "a z zz å Å ä Ä ö Ö ǀ");
    sorted("utf8mb4_hu_0900_ai_ci", "c cs d dz dzs e o ö u ü z zs");
    sorted("utf8mb4_vi_0900_ai_ci", "a ax ă â d đ o ộ ơ p");
    sorted("utf8mb4_is_0900_as_cs", "a az á b d ð e é z þ æ ö");
    sorted("utf8mb4_lv_0900_ai_ci", "c cz č d g ģ h k ķ l ļ z ž");
    sorted("utf8mb4_tr_0900_as_cs", "h ı I i İ j");
    sorted("utf8mb4_es_trad_0900_ai_ci", "c cz ch d l lz ll m n ñ o");
    sorted("latin1_general_cs", "A a Ä ä B b Z z");
}
