//! Ways in, as options name them.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use porpoise_lab::Way;

/// A way in, named by its key in experiment files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WayIn(pub Way);

const NAMED: [WayIn; Way::ALL.len()] = {
    let mut named = [WayIn(Way::Tcp); Way::ALL.len()];
    let mut at = 0;
    while at < named.len() {
        named[at] = WayIn(Way::ALL[at]);
        at += 1;
    }
    named
};

impl ValueEnum for WayIn {
    fn value_variants<'a>() -> &'a [Self] {
        &NAMED
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.key()))
    }
}
