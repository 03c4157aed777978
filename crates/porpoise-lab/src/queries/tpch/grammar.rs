//! TPC-H's sentences (clause 4.2.2.14), and texts cut out of them.
//!
//! ```text
//!   sentence     noun phrase, verb phrase, …, terminator
//!   noun phrase  [[adverb] adjective [, adjective]] noun
//!   verb phrase  [auxiliary] verb [adverb]
//! ```
//!
//! Words are chosen by the weights that the benchmark's own generator gives them: four nouns and
//! four adjectives make up most of what is written about orders, which is what query 13 looks for.
//! The specification cuts texts out of 300 MB of sentences; here there is 1 MB.

use std::ops::RangeInclusive;

use fastrand::Rng;

/// How much is written.
const POOL_BYTES: usize = 1 << 20;

/// Words, and how often each comes.
type Words = [(&'static str, u32)];

const NOUNS: &Words = &[
    ("packages", 40),
    ("requests", 40),
    ("accounts", 40),
    ("deposits", 40),
    ("foxes", 20),
    ("ideas", 20),
    ("theodolites", 20),
    ("pinto beans", 20),
    ("instructions", 20),
    ("dependencies", 10),
    ("excuses", 10),
    ("platelets", 10),
    ("asymptotes", 10),
    ("courts", 5),
    ("dolphins", 5),
    ("multipliers", 1),
    ("sauternes", 1),
    ("warthogs", 1),
    ("frets", 1),
    ("dinos", 1),
    ("attainments", 1),
    ("somas", 1),
    ("Tiresias'", 1),
    ("patterns", 1),
    ("forges", 1),
    ("braids", 1),
    ("hockey players", 1),
    ("frays", 1),
    ("warhorses", 1),
    ("dugouts", 1),
    ("notornis", 1),
    ("epitaphs", 1),
    ("pearls", 1),
    ("tithes", 1),
    ("waters", 1),
    ("orbits", 1),
    ("gifts", 1),
    ("sheaves", 1),
    ("depths", 1),
    ("sentiments", 1),
    ("decoys", 1),
    ("realms", 1),
    ("pains", 1),
    ("grouches", 1),
    ("escapades", 1),
];

const VERBS: &Words = &[
    ("sleep", 20),
    ("wake", 20),
    ("are", 20),
    ("cajole", 20),
    ("haggle", 20),
    ("nag", 10),
    ("use", 10),
    ("boost", 10),
    ("affix", 5),
    ("detect", 5),
    ("integrate", 5),
    ("maintain", 1),
    ("nod", 1),
    ("was", 1),
    ("lose", 1),
    ("sublate", 1),
    ("solve", 1),
    ("thrash", 1),
    ("promise", 1),
    ("engage", 1),
    ("hinder", 1),
    ("print", 1),
    ("x-ray", 1),
    ("breach", 1),
    ("eat", 1),
    ("grow", 1),
    ("impress", 1),
    ("mold", 1),
    ("poach", 1),
    ("serve", 1),
    ("run", 1),
    ("dazzle", 1),
    ("snooze", 1),
    ("doze", 1),
    ("unwind", 1),
    ("kindle", 1),
    ("play", 1),
    ("hang", 1),
    ("believe", 1),
    ("doubt", 1),
];

const ADJECTIVES: &Words = &[
    ("regular", 50),
    ("final", 40),
    ("ironic", 40),
    ("even", 30),
    ("special", 20),
    ("pending", 20),
    ("unusual", 20),
    ("express", 20),
    ("bold", 20),
    ("silent", 10),
    ("furious", 1),
    ("sly", 1),
    ("careful", 1),
    ("blithe", 1),
    ("quick", 1),
    ("fluffy", 1),
    ("slow", 1),
    ("quiet", 1),
    ("ruthless", 1),
    ("thin", 1),
    ("close", 1),
    ("dogged", 1),
    ("daring", 1),
    ("brave", 1),
    ("stealthy", 1),
    ("permanent", 1),
    ("enticing", 1),
    ("idle", 1),
    ("busy", 1),
];

const ADVERBS: &Words = &[
    ("furiously", 50),
    ("slyly", 50),
    ("carefully", 50),
    ("blithely", 40),
    ("quickly", 30),
    ("fluffily", 20),
    ("sometimes", 1),
    ("always", 1),
    ("never", 1),
    ("slowly", 1),
    ("quietly", 1),
    ("ruthlessly", 1),
    ("thinly", 1),
    ("closely", 1),
    ("doggedly", 1),
    ("daringly", 1),
    ("bravely", 1),
    ("stealthily", 1),
    ("permanently", 1),
    ("enticingly", 1),
    ("idly", 1),
    ("busily", 1),
    ("regularly", 1),
    ("finally", 1),
    ("ironically", 1),
    ("evenly", 1),
    ("boldly", 1),
    ("silently", 1),
];

const PREPOSITIONS: &Words = &[
    ("about", 50),
    ("above", 50),
    ("according to", 50),
    ("across", 50),
    ("after", 50),
    ("against", 40),
    ("along", 40),
    ("alongside of", 30),
    ("among", 30),
    ("around", 20),
    ("at", 10),
    ("atop", 1),
    ("before", 1),
    ("behind", 1),
    ("beneath", 1),
    ("beside", 1),
    ("besides", 1),
    ("between", 1),
    ("beyond", 1),
    ("by", 1),
    ("despite", 1),
    ("during", 1),
    ("except", 1),
    ("for", 1),
    ("from", 1),
    ("in place of", 1),
    ("inside", 1),
    ("instead of", 1),
    ("into", 1),
    ("near", 1),
    ("of", 1),
    ("on", 1),
    ("outside", 1),
    ("over", 1),
    ("past", 1),
    ("since", 1),
    ("through", 1),
    ("throughout", 1),
    ("to", 1),
    ("toward", 1),
    ("under", 1),
    ("until", 1),
    ("up", 1),
    ("upon", 1),
    ("without", 1),
    ("with", 1),
    ("within", 1),
];

const AUXILIARIES: &Words = &[
    ("do", 1),
    ("may", 1),
    ("might", 1),
    ("shall", 1),
    ("will", 1),
    ("would", 1),
    ("can", 1),
    ("could", 1),
    ("should", 1),
    ("ought to", 1),
    ("must", 1),
    ("will have to", 1),
    ("shall have to", 1),
    ("could have to", 1),
    ("should have to", 1),
    ("must have to", 1),
    ("need to", 1),
    ("try to", 1),
];

const TERMINATORS: &Words = &[(".", 50), (";", 1), (":", 1), ("?", 1), ("!", 1), ("--", 1)];

/// Sentences: N a noun phrase, V a verb phrase, P a preposition with a noun phrase.
const SENTENCES: &Words = &[("NV", 3), ("NVP", 3), ("NVN", 3), ("NPVN", 1), ("NPVP", 1)];

/// Noun phrases: n a noun, j an adjective, d an adverb; a comma follows what comes before it.
const NOUN_PHRASES: &Words = &[("n", 10), ("jn", 20), ("j,jn", 10), ("djn", 50)];

/// Verb phrases: v a verb, x an auxiliary verb, d an adverb.
const VERB_PHRASES: &Words = &[("v", 30), ("xv", 1), ("vd", 40), ("xvd", 1)];

fn choose(random: &mut Rng, words: &Words) -> &'static str {
    let total: u32 = words.iter().map(|(_, weight)| weight).sum();
    let mut left = random.u32(0..total);
    for (word, weight) in words {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return word,
        }
    }
    ""
}

/// Sentences to cut texts out of.
pub(super) struct Sentences {
    text: String,
}

impl Sentences {
    pub(super) fn write(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut text = String::with_capacity(POOL_BYTES + 200);
        while text.len() < POOL_BYTES {
            sentence(&mut random, &mut text);
        }
        Self { text }
    }

    /// A text of so many characters, which begins and ends anywhere.
    pub(super) fn text(&self, random: &mut Rng, length: RangeInclusive<usize>) -> String {
        let length = random.usize(length);
        let start = random.usize(0..self.text.len() - length);
        self.text[start..start + length].to_owned()
    }
}

fn sentence(random: &mut Rng, text: &mut String) {
    for part in choose(random, SENTENCES).chars() {
        match part {
            'V' => phrase(random, VERB_PHRASES, text),
            'P' => {
                word(text, choose(random, PREPOSITIONS));
                word(text, "the");
                phrase(random, NOUN_PHRASES, text);
            }
            _ => phrase(random, NOUN_PHRASES, text),
        }
    }
    text.push_str(choose(random, TERMINATORS));
}

fn phrase(random: &mut Rng, phrases: &Words, text: &mut String) {
    for part in choose(random, phrases).chars() {
        let words = match part {
            'n' => NOUNS,
            'j' => ADJECTIVES,
            'd' => ADVERBS,
            'v' => VERBS,
            'x' => AUXILIARIES,
            _ => {
                text.push(',');
                continue;
            }
        };
        word(text, choose(random, words));
    }
}

fn word(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(word);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_ascii_words_and_the_same_for_a_seed() {
        let sentences = Sentences::write(7);
        assert!(sentences.text.is_ascii());
        assert!(!sentences.text.contains("  "));
        assert_eq!(sentences.text, Sentences::write(7).text);
        assert_ne!(sentences.text, Sentences::write(8).text);
    }

    #[test]
    fn frequent_words_are_frequent() {
        let text = Sentences::write(1).text;
        let count = |word: &str| text.matches(word).count();
        let (frequent, rare) = (count(" packages"), count(" warthogs"));
        assert!(
            (20 * rare..80 * rare).contains(&frequent),
            "{frequent} {rare}"
        );
        assert!(count("special requests") > 100);
    }
}
