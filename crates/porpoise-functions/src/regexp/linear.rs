//! Matching in time linear in the text, by `regex-automata`: for all patterns without look-around,
//! back references and the like.
//!
//! A search of `meta::Regex` can't be ended, so it gets only what is quickly done even by its
//! slowest engine. Longer texts are walked byte by byte through automata whose states are made as
//! they are met, with a look at KILL on the way: forward to where the match ends, backward to where
//! it begins. Where the states are too many for that the search gives up.

use std::cell::{OnceCell, RefCell};

use porpoise_core::error::Result;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::{NFA, WhichCaptures};
use regex_automata::{Anchored, Input, MatchKind, meta};
use regex_syntax::hir::{self, Capture, Class, Hir, Repetition};

use super::Look;
use super::program::chars_of;
use super::syntax::{Assertion, Node, Repetition as Kind};

/// What a search that can't be ended may cost: bytes times the size of the pattern. The slowest
/// engine does it within some tens of milliseconds.
const WORK_MAX: usize = 1 << 22;
/// What a state of a compiled pattern takes, about.
const STATE_BYTES: usize = 32;
/// How large a compiled pattern may be.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// How many bytes are walked between two looks whether the statement is to end.
const BYTES_BETWEEN_LOOKS: usize = 4096;
/// How often the states may be forgotten in one search before it gives up.
const FORGETTING_MAX: usize = 16;

/// A compiled pattern.
pub(super) struct Linear {
    meta: meta::Regex,
    hir: Hir,
    automata: OnceCell<Option<RefCell<Automata>>>,
    /// `$` stands for the end alone: not for texts that end with a line end.
    pub wants_plain_end: bool,
}

/// What a search found.
pub(super) enum Found {
    /// A match, or none.
    Span(Option<(usize, usize)>),
    GaveUp,
}

impl Linear {
    /// `None` for a pattern that can't be matched so.
    pub fn new(node: &Node) -> Option<Linear> {
        let mut wants_plain_end = false;
        let hir = hir_of(node, &mut wants_plain_end)?;
        let config = meta::Config::new()
            .nfa_size_limit(Some(COMPILED_BYTES_MAX))
            .onepass_size_limit(Some(COMPILED_BYTES_MAX));
        let meta = meta::Builder::new().configure(config).build_from_hir(&hir);
        Some(Linear {
            meta: meta.ok()?,
            hir,
            automata: OnceCell::new(),
            wants_plain_end,
        })
    }

    /// Whether so many bytes are searched quickly, whatever is in them.
    pub fn is_quick(&self, bytes: usize) -> bool {
        let states = self.meta.memory_usage() / STATE_BYTES + 1;
        bytes.saturating_mul(states) <= WORK_MAX
    }

    /// Whether there is a match; for texts that are quickly searched.
    pub fn is_match(&self, text: &str, from: usize) -> bool {
        self.meta.is_match(Input::new(text).range(from..))
    }

    /// The first match; for texts that are quickly searched.
    pub fn find(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        let found = self.meta.find(Input::new(text).range(from..))?;
        Some((found.start(), found.end()))
    }

    /// The first match with its groups, as pairs; for texts that are quickly searched.
    pub fn captures(&self, text: &str, from: usize) -> Option<Vec<Option<(usize, usize)>>> {
        let mut captures = self.meta.create_captures();
        self.meta
            .search_captures(&Input::new(text).range(from..), &mut captures);
        let of = |group: usize| captures.get_group(group).map(|span| (span.start, span.end));
        of(0)?;
        Some((0..captures.group_len()).map(of).collect())
    }

    /// The first match, in a text of any length.
    pub fn walk(&self, text: &str, from: usize, look: Look<'_>) -> Result<Found> {
        let automata = self
            .automata
            .get_or_init(|| Automata::new(&self.hir).map(RefCell::new));
        match automata {
            Some(automata) => automata.borrow_mut().find(text, from, look),
            None => Ok(Found::GaveUp),
        }
    }
}

/// The pattern forward, and backward from where a match ends.
struct Automata {
    forward: (DFA, dfa::Cache),
    backward: (DFA, dfa::Cache),
}

/// Where an automaton's last match was; `Err` where it gave up.
type Walked = Result<std::result::Result<Option<usize>, ()>>;

impl Automata {
    fn new(hir: &Hir) -> Option<Automata> {
        let of = |reverse: bool, kind: MatchKind| {
            let nfa = NFA::config()
                .reverse(reverse)
                .which_captures(WhichCaptures::None)
                .nfa_size_limit(Some(COMPILED_BYTES_MAX));
            let nfa = NFA::compiler().configure(nfa).build_from_hir(hir).ok()?;
            let config = DFA::config()
                .match_kind(kind)
                .unicode_word_boundary(true)
                .minimum_cache_clear_count(Some(FORGETTING_MAX));
            let dfa = DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
            let cache = dfa.create_cache();
            Some((dfa, cache))
        };
        Some(Automata {
            forward: of(false, MatchKind::LeftmostFirst)?,
            backward: of(true, MatchKind::All)?,
        })
    }

    fn find(&mut self, text: &str, from: usize, look: Look<'_>) -> Result<Found> {
        let end = match self.walk_forward(text, from, look)? {
            Ok(Some(end)) => end,
            Ok(None) => return Ok(Found::Span(None)),
            Err(()) => return Ok(Found::GaveUp),
        };
        Ok(match self.walk_backward(text, from, end, look)? {
            Ok(Some(start)) => Found::Span(Some((start, end))),
            Ok(None) | Err(()) => Found::GaveUp,
        })
    }

    fn walk_forward(&mut self, text: &str, from: usize, look: Look<'_>) -> Walked {
        let (dfa, cache) = &mut self.forward;
        let input = Input::new(text).range(from..);
        let Ok(mut state) = dfa.start_state_forward(cache, &input) else {
            return Ok(Err(()));
        };
        let mut last = None;
        for (at, &byte) in text.as_bytes().iter().enumerate().skip(from) {
            if at % BYTES_BETWEEN_LOOKS == 0 {
                look()?;
            }
            match dfa.next_state(cache, state, byte) {
                Ok(next) => state = next,
                Err(_) => return Ok(Err(())),
            }
            // A match is told a byte late.
            match Told::by(state) {
                Told::Nothing => {}
                Told::Match => last = Some(at),
                Told::Dead => return Ok(Ok(last)),
                Told::Quit => return Ok(Err(())),
            }
        }
        match dfa.next_eoi_state(cache, state).map(Told::by) {
            Ok(Told::Match) => Ok(Ok(Some(text.len()))),
            Ok(Told::Nothing | Told::Dead) => Ok(Ok(last)),
            Ok(Told::Quit) | Err(_) => Ok(Err(())),
        }
    }

    /// Where the longest match begins that ends there.
    fn walk_backward(&mut self, text: &str, from: usize, end: usize, look: Look<'_>) -> Walked {
        let (dfa, cache) = &mut self.backward;
        let input = Input::new(text).range(from..end).anchored(Anchored::Yes);
        let Ok(mut state) = dfa.start_state_reverse(cache, &input) else {
            return Ok(Err(()));
        };
        let bytes = text.as_bytes();
        let mut last = None;
        for at in (from..end).rev() {
            if at % BYTES_BETWEEN_LOOKS == 0 {
                look()?;
            }
            match dfa.next_state(cache, state, bytes[at]) {
                Ok(next) => state = next,
                Err(_) => return Ok(Err(())),
            }
            match Told::by(state) {
                Told::Nothing => {}
                Told::Match => last = Some(at + 1),
                Told::Dead => return Ok(Ok(last)),
                Told::Quit => return Ok(Err(())),
            }
        }
        let next = match from {
            0 => dfa.next_eoi_state(cache, state),
            from => dfa.next_state(cache, state, bytes[from - 1]),
        };
        match next.map(Told::by) {
            Ok(Told::Match) => Ok(Ok(Some(from))),
            Ok(Told::Nothing | Told::Dead) => Ok(Ok(last)),
            Ok(Told::Quit) | Err(_) => Ok(Err(())),
        }
    }
}

/// What a state says.
enum Told {
    Nothing,
    Match,
    /// No match comes any more.
    Dead,
    /// The automaton doesn't know.
    Quit,
}

impl Told {
    #[inline]
    fn by(state: LazyStateID) -> Told {
        if !state.is_tagged() {
            Told::Nothing
        } else if state.is_match() {
            Told::Match
        } else if state.is_dead() {
            Told::Dead
        } else if state.is_quit() {
            Told::Quit
        } else {
            Told::Nothing
        }
    }
}

/// The node as `regex-syntax` has it; `None` where it has no such thing.
fn hir_of(node: &Node, wants_plain_end: &mut bool) -> Option<Hir> {
    Some(match node {
        Node::Empty => Hir::empty(),
        Node::Set(class) => Hir::class(Class::Unicode(class.clone())),
        Node::Concat(nodes) => {
            let nodes = nodes.iter().map(|node| hir_of(node, wants_plain_end));
            Hir::concat(nodes.collect::<Option<_>>()?)
        }
        Node::Alternate(arms) => {
            let arms = arms.iter().map(|arm| hir_of(arm, wants_plain_end));
            Hir::alternation(arms.collect::<Option<_>>()?)
        }
        Node::Repeat {
            kind: Kind::Possessive,
            ..
        } => return None,
        // Turns of a loop that match nothing are counted differently here.
        Node::Repeat { node, max, .. } if *max != Some(1) && chars_of(node).0 == 0 => return None,
        Node::Repeat {
            node,
            min,
            max,
            kind,
        } => Hir::repetition(Repetition {
            min: *min,
            max: *max,
            greedy: *kind == Kind::Greedy,
            sub: Box::new(hir_of(node, wants_plain_end)?),
        }),
        Node::Capture(group, node) => Hir::capture(Capture {
            index: *group,
            name: None,
            sub: Box::new(hir_of(node, wants_plain_end)?),
        }),
        Node::Assert(assertion) => Hir::look(match assertion {
            Assertion::StartOfText => hir::Look::Start,
            Assertion::EndOfText => hir::Look::End,
            Assertion::BeforeFinalLineEnd { .. } => {
                *wants_plain_end = true;
                hir::Look::End
            }
            Assertion::WordBoundary => hir::Look::WordUnicode,
            Assertion::NotWordBoundary => hir::Look::WordUnicodeNegate,
            Assertion::StartOfLine { .. }
            | Assertion::EndOfLine { .. }
            | Assertion::StartOfSearch => return None,
        }),
        Node::Atomic(_) | Node::Look { .. } | Node::BackReference { .. } => return None,
    })
}
