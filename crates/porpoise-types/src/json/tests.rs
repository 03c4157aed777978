use super::path::{Change, JsonPath};
use super::*;
use proptest::prelude::*;
use std::convert::Infallible;

fn json(text: &str) -> JsonValue {
    Json::parse(text)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .into_value()
}

fn path(text: &str) -> JsonPath {
    JsonPath::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn extract(document: &str, p: &str) -> String {
    JsonValue::Array(path(p).find(&json(document)).into_iter().cloned().collect()).to_string()
}

/// MySQL 8.4 manual, 13.5, "Normalization, Merging, and Autowrapping of JSON Values".
#[test]
fn documents_are_printed_normalised() {
    let facts = [
        (
            r#"{"key1": 1, "key2": "abc", "key1": "def"}"#,
            r#"{"key1": "def", "key2": "abc"}"#,
        ),
        (
            r#"{"bb":1,"a":2,"c":[1,2,{}],"":[]}"#,
            r#"{"": [], "a": 2, "c": [1, 2, {}], "bb": 1}"#,
        ),
        (
            r#" [1.0, 1e2, -3, 18446744073709551615, 1.5e300] "#,
            "[1.0, 100.0, -3, 18446744073709551615, 1.5e300]",
        ),
        (
            r#""a\u00e9\n\u0001\"\ud83d\ude00\/""#,
            "\"aé\\n\\u0001\\\"😀/\"",
        ),
        ("[true, false, null]", "[true, false, null]"),
    ];
    for (text, expected) in facts {
        assert_eq!(json(text).to_string(), expected);
    }
}

#[test]
fn invalid_documents_say_where() {
    let facts = [
        ("", "The document is empty.", 0),
        ("[1, 2", "Missing a comma or ] after an array element.", 5),
        (
            "{\"a\" 1}",
            "Missing a colon after a name of object member.",
            5,
        ),
        (
            "{\"a\": 1 1}",
            "Missing a comma or } after an object member.",
            8,
        ),
        ("{a: 1}", "Missing a name for object member.", 1),
        ("abc", "Invalid value.", 0),
        (
            "1 2",
            "The document root must not be followed by other values.",
            2,
        ),
        ("\"abc", "Missing a closing quotation mark in string.", 0),
        ("\"\\x\"", "Invalid escape character in string.", 1),
        ("1e999", "Number too big to be stored in double.", 0),
        ("1.", "Miss fraction part in number.", 2),
    ];
    for (text, message, position) in facts {
        assert_eq!(
            Json::parse(text),
            Err(JsonError { message, position }),
            "{text}"
        );
    }
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(Json::parse(&deep(DEPTH_MAX)).is_ok());
    assert!(Json::parse(&deep(DEPTH_MAX + 1)).is_err());
    assert!(Json::parse(&"[".repeat(1_000_000)).is_err());
}

/// MySQL 8.4 manual, 14.17.
#[test]
fn paths_find_what_the_manual_shows() {
    let facts = [
        ("[10, 20, [30, 40]]", "$[1]", "[20]"),
        ("[10, 20, [30, 40]]", "$[2][*]", "[30, 40]"),
        ("[10, 20, [30, 40]]", "$[last]", "[[30, 40]]"),
        ("[1, 2, 3, 4, 5]", "$[1 to 3]", "[2, 3, 4]"),
        ("[1, 2, 3, 4, 5]", "$[last-2 to last]", "[3, 4, 5]"),
        (
            r#"{"a": 1, "b": 2, "c": [3, 4, 5]}"#,
            "$.*",
            "[1, 2, [3, 4, 5]]",
        ),
        (r#"{"a": {"b": 1}, "c": {"b": 2}}"#, "$**.b", "[1, 2]"),
        (r#"{"a fish": "shark"}"#, r#"$."a fish""#, r#"["shark"]"#),
        (r#"{"a": 1}"#, "$.a[0]", "[1]"),
        (r#"{"a": 1}"#, "$[0][last].a", "[1]"),
        ("5", "$[1]", "[]"),
        ("[1, [2]]", "$ ** [0]", "[1, 2]"),
    ];
    for (document, p, expected) in facts {
        assert_eq!(extract(document, p), expected, "{document} {p}");
    }
    for bad in [
        "",
        "a",
        "$.",
        "$[",
        "$[x]",
        "$**",
        "$.a b",
        "$[3 to 1]",
        "$.\"a",
        "$.1a",
    ] {
        assert!(JsonPath::parse(bad).is_err(), "{bad}");
    }
}

/// MySQL 8.4 manual, 14.17.4.
#[test]
fn documents_are_changed_as_the_manual_shows() {
    let apply = |text: &str, changes: &[(&str, i64)], how| {
        let mut root = json(text);
        changes
            .iter()
            .for_each(|(p, v)| path(p).change(&mut root, JsonValue::Int(*v), how));
        root.to_string()
    };
    let doc = r#"{"a": 1, "b": [2, 3]}"#;
    let both: &[(&str, i64)] = &[("$.a", 10), ("$.c", 7)];
    assert_eq!(
        apply(doc, both, Change::Set),
        r#"{"a": 10, "b": [2, 3], "c": 7}"#
    );
    assert_eq!(
        apply(doc, both, Change::Insert),
        r#"{"a": 1, "b": [2, 3], "c": 7}"#
    );
    assert_eq!(
        apply(doc, both, Change::Replace),
        r#"{"a": 10, "b": [2, 3]}"#
    );
    assert_eq!(apply("1", &[("$[0]", 2)], Change::Set), "2");
    assert_eq!(apply("1", &[("$[3]", 2)], Change::Set), "[1, 2]");
    assert_eq!(apply("[1]", &[("$[last-5]", 2)], Change::Insert), "[2, 1]");

    let mut root = json(r#"["a", ["b", "c"], "d"]"#);
    path("$[1]").remove(&mut root);
    assert_eq!(root.to_string(), r#"["a", "d"]"#);
    let mut root = json(r#"["a", ["b", "c"], "d"]"#);
    path("$[1][0]").array_append(&mut root, JsonValue::Int(3));
    assert_eq!(root.to_string(), r#"["a", [["b", 3], "c"], "d"]"#);
    let mut root = json(r#"["a", {"b": [1, 2]}, [3, 4]]"#);
    path("$[1].b[0]").array_insert(&mut root, json("\"x\""));
    path("$[100]").array_insert(&mut root, json("\"y\""));
    assert_eq!(
        root.to_string(),
        r#"["a", {"b": ["x", 1, 2]}, [3, 4], "y"]"#
    );
}

#[test]
fn merging_preserves_or_patches() {
    let merge = |a: &str, b: &str| json(a).merge_preserve(json(b)).to_string();
    assert_eq!(merge("[1, 2]", "[true, false]"), "[1, 2, true, false]");
    assert_eq!(merge("1", "true"), "[1, true]");
    assert_eq!(
        merge(r#"{"a": 1, "b": 2}"#, r#"{"a": 3, "c": 4}"#),
        r#"{"a": [1, 3], "b": 2, "c": 4}"#
    );
    let patch = |a: &str, b: &str| json(a).merge_patch(json(b)).to_string();
    assert_eq!(
        patch(r#"{"a":1, "b":2}"#, r#"{"b":null, "c":{"d":null,"e":1}}"#),
        r#"{"a": 1, "c": {"e": 1}}"#
    );
    assert_eq!(patch("[1, 2]", r#"{"id": 47}"#), r#"{"id": 47}"#);
}

#[test]
fn kinds_order_and_numbers_compare_by_value() {
    let ascending = [
        "null", "-1", "1", "1.5", "2", "\"\"", "\"a\"", "{}", "[]", "[1]", "[1, 0]", "false",
        "true",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(json(a).compare(&json(b)), i.cmp(&j), "{a} {b}");
        }
    }
    assert!(json("1.0").compare(&json("1")).is_eq());
    let check = &mut || Ok::<(), Infallible>(());
    let mut contains = |a: &str, b: &str| json(a).contains(&json(b), check).unwrap();
    assert!(contains(r#"{"a": 1, "b": {"c": 30}}"#, r#"{"b": {}}"#));
    assert!(contains("[1, [2, 3]]", "2"));
    assert!(!contains("[1]", "[1, 2]"));
    let check = &mut || Ok::<(), Infallible>(());
    let mut overlaps = |a: &str, b: &str| json(a).overlaps(&json(b), check).unwrap();
    assert!(overlaps("[1,3]", "[3]") && !overlaps("{}", "1"));
}

#[test]
fn shape_and_text() {
    assert_eq!(
        (json("[]").depth(), json("[10, {\"a\": 20}]").depth()),
        (1, 3)
    );
    assert_eq!(json("\"a\\\"b\"").unquoted(), "a\"b");
    assert_eq!(
        JsonValue::Opaque {
            type_code: 252,
            bytes: b"ab".to_vec()
        }
        .to_string(),
        "\"base64:type252:YWI=\""
    );
    let mut pretty = Vec::new();
    json(r#"{"a": [1, {}], "b": []}"#).write_pretty(&mut pretty);
    assert_eq!(
        String::from_utf8(pretty).unwrap(),
        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"
    );
    let found = json(r#"["abc", {"x y": "abc"}, {"z": "abd"}]"#).search(&|s| s == "abc");
    assert_eq!(found, ["$[0]", "$[1].\"x y\""]);
}

fn any_json() -> impl Strategy<Value = JsonValue> {
    let leaf = prop_oneof![
        Just(JsonValue::Null),
        any::<bool>().prop_map(JsonValue::Bool),
        any::<i64>().prop_map(JsonValue::Int),
        (-1e9f64..1e9).prop_map(JsonValue::Double),
        ".{0,5}".prop_map(|s| JsonValue::String(s.into())),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(JsonValue::Array),
            proptest::collection::vec((".{0,3}", inner), 0..4)
                .prop_map(|m| JsonValue::object(m.into_iter().map(|(k, v)| (k.into(), v)))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_parsed_back(v in any_json()) {
        let text = v.to_string();
        prop_assert!(json(&text).compare(&v).is_eq(), "{}", text);
        prop_assert_eq!(json(&text).to_string(), text);
    }

    #[test]
    fn keys_order_as_documents_compare(a in any_json(), b in any_json()) {
        use crate::{DataType, KeyBuf, Value, encode_key_part, skip_key_part};
        let key = |v: &JsonValue| {
            let mut out = KeyBuf::new();
            encode_key_part(&Value::Json(Json::new(v.clone())), &DataType::Json, false, false, None, &mut out);
            out
        };
        let (mut ka, kb) = (key(&a), key(&b));
        prop_assert_eq!(ka == kb, a.compare(&b).is_eq());
        if !matches!((&a, &b), (JsonValue::Object(_), JsonValue::Object(_)) | (JsonValue::Array(_), JsonValue::Array(_))) {
            prop_assert_eq!(ka.cmp(&kb), a.compare(&b));
        }
        let n = ka.len();
        ka.push(7);
        prop_assert_eq!(skip_key_part(&ka, &DataType::Json, false, false), Some(n));
    }

    #[test]
    fn no_text_panics(text in "[\\[\\]{}\",:0-9a-z\\\\ .$*-]{0,30}") {
        let _ = Json::parse(&text);
        let _ = JsonPath::parse(&text);
        let _ = JsonPath::parse(&format!("${text}"));
    }
}
