//! JSON documents that keep the order in which their members were written: EXPLAIN's, and the
//! optimizer trace.

use porpoise_types::json::write_quoted;

/// A value of a document.
pub enum Item {
    Text(String),
    Number(u64),
    Real(f64),
    Bool(bool),
    Array(Vec<Item>),
    Object(Members),
}

/// An object's names and values.
pub type Members = Vec<(&'static str, Item)>;

impl Item {
    /// The document: a line each member, indented by two spaces, from a depth on; or all in one
    /// line.
    pub fn document(&self, depth: Option<usize>) -> String {
        let mut bytes = Vec::new();
        self.write(depth, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn write(&self, depth: Option<usize>, out: &mut Vec<u8>) {
        let below = depth.map(|depth| depth + 1);
        match self {
            Item::Text(text) => write_quoted(text, out),
            Item::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Item::Real(number) => out.extend_from_slice(real(*number).as_bytes()),
            Item::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Item::Array(items) => list(b"[]", items, depth, out, |item, out| {
                item.write(below, out);
            }),
            Item::Object(members) => list(b"{}", members, depth, out, |(name, item), out| {
                write_quoted(name, out);
                out.extend_from_slice(b": ");
                item.write(below, out);
            }),
        }
    }
}

/// A number with at most six digits behind the point, and one at least.
fn real(number: f64) -> String {
    let text = format!("{number:.6}");
    let zeros = text.len() - text.trim_end_matches('0').len();
    text[..text.len() - zeros.min(5)].to_string()
}

/// Items between brackets.
fn list<T>(
    brackets: &[u8; 2],
    items: &[T],
    depth: Option<usize>,
    out: &mut Vec<u8>,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    let begin_line = |depth: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    out.push(brackets[0]);
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        match depth {
            Some(depth) => begin_line(depth + 1, out),
            None if number > 0 => out.push(b' '),
            None => {}
        }
        write(item, out);
    }
    if let Some(depth) = depth {
        begin_line(depth, out);
    }
    out.push(brackets[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_indented_or_one_line() {
        let item = Item::Object(vec![
            ("a", Item::Array(vec![Item::Number(1), Item::Real(2.5)])),
            ("b", Item::Bool(true)),
        ]);
        let indented = "{\n  \"a\": [\n    1,\n    2.5\n  ],\n  \"b\": true\n}";
        assert_eq!(item.document(Some(0)), indented);
        assert_eq!(item.document(None), "{\"a\": [1, 2.5], \"b\": true}");
    }

    #[test]
    fn reals_have_few_digits() {
        let texts = [1.0, 0.1234567, 100.0, 0.5].map(real);
        assert_eq!(texts, ["1.0", "0.123457", "100.0", "0.5"]);
    }
}
