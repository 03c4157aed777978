//! Patterns and what they match, by both matchers.

use super::*;

const LIMITS: Limits = Limits {
    steps: 32,
    stack_bytes: 8_000_000,
};

fn flags(letters: &str) -> Flags {
    Flags {
        ignore_case: letters.contains('i'),
        multi_line: letters.contains('m'),
        dot_all: letters.contains('n'),
        unix_lines: letters.contains('u'),
        comments: false,
    }
}

fn compiled(pattern: &str, letters: &str) -> Pattern {
    Pattern::new(pattern, flags(letters)).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// All matches and their groups, one after the other: `whole(group,group)`.
fn told(text: &str, search: &mut Search<'_>) -> Result<String> {
    let mut out = String::new();
    let mut from = Some(0);
    while let Some(start) = from
        && let Some(found) = search.find(start, true)?
    {
        out.push_str(&format!("[{}", &text[found.start..found.end]));
        for group in &found.groups {
            let group = group.map_or("-", |(start, end)| &text[start..end]);
            out.push_str(&format!(",{group}"));
        }
        out.push(']');
        from = search.behind(&found);
    }
    Ok(out)
}

fn by_backtracking(pattern: &Pattern, text: &str) -> Result<String> {
    let mut search = Search::new(pattern, text, LIMITS, &|| Ok(()));
    search.linear = None;
    told(text, &mut search)
}

/// What all ways to match give, which is the same.
#[track_caller]
fn matches(pattern: &str, letters: &str, text: &str) -> String {
    let pattern_of = compiled(pattern, letters);
    let mut search = Search::new(&pattern_of, text, LIMITS, &|| Ok(()));
    let found = told(text, &mut search).expect("within the limits");
    let backtracked = by_backtracking(&pattern_of, text).expect("within the limits");
    assert_eq!(found, backtracked, "{pattern} in {text}");
    let any = Search::new(&pattern_of, text, LIMITS, &|| Ok(())).is_match();
    assert_eq!(any.expect("within the limits"), !found.is_empty());
    if let Some(linear) = search.linear
        && let Found::Span(span) = linear.walk(text, 0, &|| Ok(())).expect("isn't ended")
    {
        assert_eq!(span, linear.find(text, 0), "{pattern} in {text}");
    }
    found
}

#[test]
fn patterns_match_as_icu_says() {
    let cases = [
        // Repetitions.
        ("a*", "", "baac", "[][aa][][]"),
        ("a{2,3}", "", "aaaaa", "[aaa][aa]"),
        ("a{2,}?", "", "aaaaa", "[aa][aa]"),
        ("(ab)*c", "", "ababcc", "[ababc,ab][c,-]"),
        ("(?:ab){2,3}", "", "ababababab", "[ababab][abab]"),
        ("(a|ab)(c|bcd)(d*)", "", "abcd", "[abcd,a,bcd,]"),
        ("(?:a?){3}b", "", "aab", "[aab]"),
        ("(a*)*b", "", "aab", "[aab,]"),
        ("a++b", "", "aaab", "[aaab]"),
        ("a++ab", "", "aaab", ""),
        ("(?>a|ab)c", "", "abc", ""),
        ("(?>ab|a)c", "", "abc", "[abc]"),
        ("x*+x", "", "xxx", ""),
        ("(?:ab)++b", "", "ababb", "[ababb]"),
        // Look-around.
        ("a(?=b)", "", "abac", "[a]"),
        ("a(?!b).", "", "abac", "[ac]"),
        ("(?<=a)b", "", "abcb", "[b]"),
        ("(?<!a)b", "", "abcb", "[b]"),
        ("(?<=a{1,3})b", "", "aaab", "[b]"),
        ("(?<=ä|ß)b", "", "äbßbxb", "[b][b]"),
        ("(?=(a+))a*b\\1", "", "baaabac", "[aba,a]"),
        ("^(?!.*bad).*$", "", "good one", "[good one]"),
        ("^(?!.*bad).*$", "", "a bad one", ""),
        (
            "(?<![a-z])cat(?![a-z])",
            "i",
            "Cat concat cat5",
            "[Cat][cat]",
        ),
        // Back references.
        ("(a+)b\\1", "", "aabaa", "[aabaa,aa]"),
        ("(.)\\1", "", "abba", "[bb,b]"),
        ("(.)\\1", "i", "aBb", "[Bb,B]"),
        ("(?<q>['\"]).*?\\k<q>", "", "a 'b\"c' d", "['b\"c',']"),
        ("(a)|b\\1", "", "b", ""),
        ("(a)\\10", "", "aa0", "[aa0,a]"),
        // Sets.
        ("[a-c&&[^b]]+", "", "abcabc", "[a][ca][c]"),
        ("[[a-z]--[aeiou]]+", "", "hello", "[h][ll]"),
        ("[]a]+", "", "a]b", "[a]]"),
        ("[^]a]+", "", "a]b", "[b]"),
        ("[a\\]]+", "", "a]b", "[a]]"),
        ("[a-]+", "", "b-a", "[-a]"),
        ("[[:alpha:]]+", "", "äb1", "[äb]"),
        ("[[:^digit:]]+", "", "a1", "[a]"),
        ("[\\d\\s]+", "", "a1 2b", "[1 2]"),
        ("\\p{Lu}+", "", "aBÄ", "[BÄ]"),
        ("\\P{Lu}+", "", "aBÄ", "[a]"),
        ("\\p{Greek}", "", "aβ", "[β]"),
        ("[^ä]", "i", "äÄa", "[a]"),
        // Escapes.
        ("\\x41\\u0042\\x{43}\\0104", "", "ABCD", "[ABCD]"),
        ("\\Qa.b\\E+", "", "a.bb", "[a.bb]"),
        ("\\h\\v\\R", "", " \n\r\n", "[ \n\r\n]"),
        ("a\\.b", "", "a.b axb", "[a.b]"),
        // Where things lie.
        ("^a", "", "a\na", "[a]"),
        ("^a", "m", "a\na", "[a][a]"),
        ("a$", "", "a\na\n", "[a]"),
        ("a\\z", "", "a\na\n", ""),
        ("a\\Z", "", "a\na\r\n", "[a]"),
        ("a$", "m", "a\na\n", "[a][a]"),
        ("a$", "u", "a\r", ""),
        ("a$", "", "a\r", "[a]"),
        ("a.b", "", "a\nb a\rb", ""),
        ("a.b", "u", "a\nb a\rb", "[a\rb]"),
        ("a.b", "n", "a\nb", "[a\nb]"),
        ("\\bfoo\\b", "", "foo food foo", "[foo][foo]"),
        ("\\b.", "", "ab äb", "[a][ ][ä]"),
        ("\\Ba", "", "aa", "[a]"),
        ("\\Ga", "", "aab", "[a][a]"),
        // Flags and comments.
        ("(?i)ab(?-i)c", "", "ABc ABC", "[ABc]"),
        ("(?i:a)b", "", "Ab AB", "[Ab]"),
        ("a(?#what)b", "", "ab", "[ab]"),
        ("(?x) a b # what\n c", "", "abc", "[abc]"),
        ("(?s)a.b", "", "a\nb", "[a\nb]"),
        ("STRASSE", "i", "strasse", "[strasse]"),
        ("ÄÖ", "i", "äö", "[äö]"),
    ];
    for (pattern, letters, text, expected) in cases {
        assert_eq!(
            matches(pattern, letters, text),
            expected,
            "{pattern} in {text}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_pattern_is_told() {
    let cases = [
        ("(", 3691),
        ("a)", 3691),
        ("(?:a", 3691),
        ("(?", 3691),
        ("[a", 3696),
        ("[", 3696),
        ("[b-a]", 3697),
        ("*", 3688),
        ("a**", 3688),
        ("a|*", 3688),
        ("(?y)", 3688),
        ("a{", 3692),
        ("a{x}", 3692),
        ("a{1", 3692),
        ("a{2,1}", 3693),
        ("a{99999999}", 3700),
        ("\\", 3689),
        ("\\y", 3689),
        ("\\x{110000}", 3689),
        ("\\1", 3694),
        ("(a)\\2", 3694),
        ("\\k<a>", 3694),
        ("(?<=a+)b", 3695),
        ("(?<1>a)", 3887),
        ("\\p{Nonsense}", 3685),
        ("[[:<:]]", 3685),
        ("\\X", 3690),
        ("\\N{SPACE}", 3690),
    ];
    for (pattern, number) in cases {
        let error = Pattern::new(pattern, Flags::default()).err();
        assert_eq!(error.map(|error| error.number()), Some(number), "{pattern}");
    }
    let deep = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
    let error = Pattern::new(&deep, Flags::default()).err();
    assert_eq!(error.map(|error| error.number()), Some(3700));
    let error = Pattern::new("a\nb\n(*", Flags::default()).err();
    let words = "Syntax error in regular expression on line 3, character 2.";
    assert_eq!(
        error.map(|error| error.message().to_string()),
        Some(words.into())
    );
}

#[test]
fn what_explodes_is_ended_by_the_limits() {
    let text = "a".repeat(10_000);
    let number = |pattern: &str, limits: Limits| {
        let pattern = compiled(pattern, "");
        let mut search = Search::new(&pattern, &text, limits, &|| Ok(()));
        search.linear = None;
        search.is_match().map_err(|error| error.number())
    };
    assert_eq!(number("(a+)+b", LIMITS), Err(3699));
    assert_eq!(number("(?=a)(a|aa)+b", LIMITS), Err(3699));
    assert_eq!(number("(?:(?=a).)*", LIMITS), Ok(true));
    let small = Limits {
        stack_bytes: 64_000,
        ..LIMITS
    };
    assert_eq!(number("(?:(?=a).)*b", small), Err(3698));
    assert_eq!(number(".*", small), Ok(true));
    // In linear time it comes to its end.
    let pattern = compiled("(a+)+b", "");
    let mut search = Search::new(&pattern, &text, LIMITS, &|| Ok(()));
    assert!(!search.is_match().expect("within the limits"));
}

#[test]
fn long_texts_are_walked() {
    let text = format!("{}xyz{}", "ab".repeat(150_000), "ab".repeat(1000));
    for (pattern, expected) in [
        ("x", Some((300_000, 300_001))),
        ("bx.z", Some((299_999, 300_003))),
        ("[a-c]+x", Some((0, 300_001))),
        ("(b|xy|x)z", Some((300_000, 300_003))),
        ("\\bx", None),
        ("zb|q$", None),
        ("^b", None),
        ("b$", Some((302_002, 302_003))),
    ] {
        let compiled = compiled(pattern, "");
        let linear = compiled.linear.as_ref().expect("is linear");
        match linear.walk(&text, 0, &|| Ok(())).expect("isn't ended") {
            Found::Span(span) => assert_eq!(span, expected, "{pattern}"),
            Found::GaveUp => panic!("{pattern}: gave up"),
        }
    }
}

#[test]
fn every_search_can_be_ended() {
    let text = "ab".repeat(500_000);
    let unlimited = Limits {
        steps: 0,
        stack_bytes: 0,
    };
    for (pattern, backtracks) in [
        ("(?:[ab]{1,50}){1,50}c", false),
        ("\\bc\\b", false),
        ("(?:a|b)*?c", false),
        ("(?=a)b", true),
        ("(?<=a)a", true),
        (".*c", true),
        (".*?c", true),
        ("(a|b)+c", true),
        ("([ab]*)*c", true),
        ("(a.*)c\\1", true),
        ("(?:ab)*+c", true),
        ("(?:(?!c).)*c", true),
    ] {
        let looks = std::cell::Cell::new(0);
        let end_at_fifth = || {
            looks.set(looks.get() + 1);
            match looks.get() < 5 {
                true => Ok(()),
                false => Err(Error::query_interrupted()),
            }
        };
        let compiled = compiled(pattern, "");
        let mut search = Search::new(&compiled, &text, unlimited, &end_at_fifth);
        if backtracks {
            search.linear = None;
        }
        let began = std::time::Instant::now();
        let outcome = search.find(0, true).map(|found| found.is_some());
        assert_eq!(
            outcome.map_err(|error| error.number()),
            Err(1317),
            "{pattern}"
        );
        assert!(began.elapsed().as_secs() < 3, "{pattern}");
    }
}

/// A small generator of random patterns and texts.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pattern(&mut self, depth: u64) -> String {
        let mut out = String::new();
        for _ in 0..=self.below(3) {
            let node = match self.below(if depth == 0 { 7 } else { 11 }) {
                0 | 1 => "a".into(),
                2 => "b".into(),
                3 => "[^a]".into(),
                4 => ".".into(),
                5 => ["^", "\\b", "$", "\\B"][self.below(4) as usize].into(),
                6 => "ä".into(),
                7 => format!("({})", self.pattern(depth - 1)),
                8 => format!(
                    "(?:{}|{})",
                    self.pattern(depth - 1),
                    self.pattern(depth - 1)
                ),
                9 => format!("(?:{})", self.pattern(depth - 1)),
                _ => format!("({}|{})", self.pattern(depth - 1), self.pattern(depth - 1)),
            };
            let repeats = !node.starts_with(['^', '\\', '$']) && !node.contains(['^', '\\', '$']);
            out.push_str(&node);
            if repeats {
                let signs = ["", "", "", "?", "+", "{2}", "{1,2}?", "+?"];
                out.push_str(signs[self.below(8) as usize]);
            }
        }
        out
    }
}

#[test]
fn both_matchers_find_the_same() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..400 {
        let pattern = random.pattern(2);
        for _ in 0..3 {
            let text: String = (0..random.below(12))
                .map(|_| ['a', 'b', 'ä', ' ', 'c'][random.below(5) as usize])
                .collect();
            matches(&pattern, "", &text);
        }
    }
}
