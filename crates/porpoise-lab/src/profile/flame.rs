//! Flame graphs of stacks.

use inferno::flamegraph::{self, Options};

use super::stacks::Stacks;
use crate::Error;

fn options<'a>(title: &str, count: &str) -> Options<'a> {
    let mut options = Options::default();
    options.title = title.to_owned();
    options.count_name = count.to_owned();
    // Two graphs of one function have it in one colour.
    options.hash = true;
    options.deterministic = true;
    options
}

/// The graph of stacks.
pub(super) fn graph(title: &str, count: &str, stacks: &Stacks) -> Result<Vec<u8>, Error> {
    let folded = stacks.folded();
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options(title, count), folded.lines(), &mut svg)?;
    Ok(svg)
}

/// The graph of `after`, red where it has a larger share than `before`, blue where a smaller one.
pub(super) fn difference(title: &str, before: &Stacks, after: &Stacks) -> Result<Vec<u8>, Error> {
    let mut both = Vec::new();
    // Recordings differ in length and load: shares are compared.
    let how = inferno::differential::Options {
        normalize: true,
        ..Default::default()
    };
    inferno::differential::from_readers(
        how,
        before.folded().as_bytes(),
        after.folded().as_bytes(),
        &mut both,
    )?;
    let both = String::from_utf8_lossy(&both);
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options(title, "samples"), both.lines(), &mut svg)?;
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_every_function_and_a_difference_the_change_of_shares() {
        let before = Stacks::parse("server;run;parse 50\nserver;run;plan 50\n");
        let after = Stacks::parse("server;run;parse 10\nserver;run;plan 30\n");
        let svg = String::from_utf8(graph("T", "samples", &before).unwrap()).unwrap();
        assert!(
            svg.contains("<title>parse (50 samples, 50.00%)</title>"),
            "{svg}"
        );
        let svg = String::from_utf8(difference("T", &before, &after).unwrap()).unwrap();
        assert!(
            svg.contains("; -25.00%") && svg.contains("; +25.00%"),
            "{svg}"
        );
    }
}
