//! A pattern as instructions for the backtracking matcher.
//!
//! ```text
//! a(b|cd)*e     0 Set a
//!               1 Enter loop         ◄── where its last turn began: nowhere yet
//!               2 Loop, exit 9       ◄─┐
//!               3 Save 2               │
//!               4 Split 5, 7           │
//!               …                      │
//!               8 Jump ────────────────┘
//!               9 Set e
//!              10 Match
//! ```
//!
//! What the matcher has to remember beside its position lies in registers: two for each group, then
//! those of loops, atomic groups and look-arounds. A repetition of a single set is one instruction.

use porpoise_core::error::{Error, Result};
use regex_syntax::hir::ClassUnicode;

use super::syntax::{Assertion, Node, Parsed, Repetition};

/// A register that holds nothing.
pub(super) const NOWHERE: usize = usize::MAX;
/// How many instructions a program may have.
pub(super) const INSTRUCTIONS_MAX: usize = 1 << 16;

/// Where in the program.
pub(super) type Place = u32;
/// The number of a register.
pub(super) type Register = u32;

/// A set of characters, quick for ASCII.
#[derive(Debug)]
pub(super) struct CharSet {
    ascii: u128,
    ranges: Box<[(char, char)]>,
}

impl CharSet {
    fn new(class: &ClassUnicode) -> CharSet {
        let ranges: Box<[(char, char)]> = class
            .ranges()
            .iter()
            .map(|r| (r.start(), r.end()))
            .collect();
        let has = |c: char| ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
        let ascii = (0..128u8).filter(|byte| has(char::from(*byte)));
        let ascii = ascii.fold(0, |bits, byte| bits | 1 << byte);
        CharSet { ascii, ranges }
    }

    /// Marks, which belong to the character before them.
    pub fn marks() -> CharSet {
        CharSet::new(&super::syntax::marks())
    }

    #[inline]
    pub fn contains(&self, c: char) -> bool {
        if c.is_ascii() {
            return self.ascii >> (c as u32) & 1 == 1;
        }
        let at = self.ranges.partition_point(|(_, high)| *high < c);
        self.ranges.get(at).is_some_and(|(low, _)| *low <= c)
    }
}

#[derive(Debug)]
pub(super) struct LoopBounds {
    pub min: u32,
    pub max: Option<u32>,
    pub is_lazy: bool,
    /// How many turns were made; where nothing depends on it there is none.
    pub turns: Option<Register>,
    /// Where the last turn began.
    pub began: Register,
}

#[derive(Debug)]
pub(super) enum Instruction {
    Set(u32),
    /// A set so many times.
    Span {
        set: u32,
        min: u32,
        max: u32,
        kind: Repetition,
    },
    /// The first, and the second if that fails.
    Split(Place, Place),
    Jump(Place),
    /// The position, into a register.
    Save(Register),
    Assert(Assertion),
    BackReference {
        group: u32,
        ignore_case: bool,
    },
    EnterLoop(Box<LoopBounds>),
    /// Another turn, which begins behind this, or the exit.
    Loop(Box<LoopBounds>, Place),
    /// A turn that a lazy loop makes after all.
    Turn(Box<LoopBounds>, Place),
    /// Notes how much there is to go back to.
    AtomicStart(Register),
    /// Forgets what there was to go back to since then.
    AtomicEnd(Register),
    /// Notes the position, too.
    LookStart {
        height: Register,
        position: Register,
    },
    /// Goes on where the look began.
    LookEnd {
        height: Register,
        position: Register,
    },
    /// As `LookStart`; if what follows fails, the program goes on at the place.
    NegativeStart {
        height: Register,
        position: Register,
        exit: Place,
    },
    /// What must not match has matched.
    NegativeEnd(Register),
    /// Begins so many characters before the position, `min` first.
    Behind {
        min: u32,
        max: u32,
    },
    /// A look behind has to end where it began.
    BehindEnd(Register),
    Match,
}

#[derive(Debug, Default)]
pub(super) struct Program {
    pub instructions: Vec<Instruction>,
    pub sets: Vec<CharSet>,
    pub registers: u32,
    pub groups: u32,
    /// Matches begin at the start of the text alone.
    pub is_anchored: bool,
    /// The bytes that matches begin with; `None` where a match may begin with any, or be empty.
    pub first: Option<Box<[bool; 256]>>,
}

impl Program {
    pub fn new(parsed: &Parsed) -> Result<Program> {
        let mut program = Program {
            registers: 2 * (parsed.groups + 1),
            groups: parsed.groups,
            is_anchored: is_anchored(&parsed.node),
            ..Program::default()
        };
        let mut first = Box::new([false; 256]);
        if first_bytes(&parsed.node, &mut first) {
            program.first = Some(first);
        }
        program.node(&parsed.node)?;
        program.push(Instruction::Match)?;
        Ok(program)
    }

    fn next(&self) -> Place {
        self.instructions.len() as Place
    }

    fn push(&mut self, instruction: Instruction) -> Result<usize> {
        if self.instructions.len() >= INSTRUCTIONS_MAX {
            return Err(Error::regexp_too_big());
        }
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    fn register(&mut self) -> Register {
        self.registers += 1;
        self.registers - 1
    }

    fn set(&mut self, class: &ClassUnicode) -> u32 {
        self.sets.push(CharSet::new(class));
        self.sets.len() as u32 - 1
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        match node {
            Node::Empty => {}
            Node::Set(class) => {
                let set = self.set(class);
                self.push(Instruction::Set(set))?;
            }
            Node::Concat(nodes) => {
                for node in nodes {
                    self.node(node)?;
                }
            }
            Node::Alternate(arms) => self.alternate(arms)?,
            Node::Repeat {
                node,
                min,
                max,
                kind,
            } => self.repeat(node, *min, *max, *kind)?,
            Node::Capture(group, node) => {
                self.push(Instruction::Save(2 * group))?;
                self.node(node)?;
                self.push(Instruction::Save(2 * group + 1))?;
            }
            Node::Atomic(node) => self.atomic(|program| program.node(node))?,
            Node::Look {
                behind,
                negated,
                node,
            } => self.look(node, *behind, *negated)?,
            Node::BackReference { group, ignore_case } => {
                self.push(Instruction::BackReference {
                    group: *group,
                    ignore_case: *ignore_case,
                })?;
            }
            Node::Assert(assertion) => {
                self.push(Instruction::Assert(*assertion))?;
            }
        }
        Ok(())
    }

    fn alternate(&mut self, arms: &[Node]) -> Result<()> {
        let mut jumps = Vec::new();
        for (number, arm) in arms.iter().enumerate() {
            if number + 1 == arms.len() {
                self.node(arm)?;
                break;
            }
            let split = self.push(Instruction::Split(0, 0))?;
            self.node(arm)?;
            jumps.push(self.push(Instruction::Jump(0))?);
            self.instructions[split] = Instruction::Split(split as Place + 1, self.next());
        }
        for jump in jumps {
            self.instructions[jump] = Instruction::Jump(self.next());
        }
        Ok(())
    }

    fn atomic(&mut self, body: impl FnOnce(&mut Program) -> Result<()>) -> Result<()> {
        let height = self.register();
        self.push(Instruction::AtomicStart(height))?;
        body(self)?;
        self.push(Instruction::AtomicEnd(height))?;
        Ok(())
    }

    fn repeat(&mut self, node: &Node, min: u32, max: Option<u32>, kind: Repetition) -> Result<()> {
        if let Node::Set(class) = node {
            let set = self.set(class);
            let max = max.unwrap_or(u32::MAX);
            self.push(Instruction::Span {
                set,
                min,
                max,
                kind,
            })?;
            return Ok(());
        }
        if kind == Repetition::Possessive {
            return self.atomic(|program| program.repeat(node, min, max, Repetition::Greedy));
        }
        let is_lazy = kind == Repetition::Lazy;
        if (min, max) == (0, Some(1)) {
            let split = self.push(Instruction::Split(0, 0))?;
            self.node(node)?;
            let (body, exit) = (split as Place + 1, self.next());
            self.instructions[split] = match is_lazy {
                true => Instruction::Split(exit, body),
                false => Instruction::Split(body, exit),
            };
            return Ok(());
        }
        let turns = (min > 1 || max.is_some()).then(|| self.register());
        let began = self.register();
        let bounds = || {
            Box::new(LoopBounds {
                min,
                max,
                is_lazy,
                turns,
                began,
            })
        };
        self.push(Instruction::EnterLoop(bounds()))?;
        let start = self.push(Instruction::Loop(bounds(), 0))?;
        let jump = self.push(Instruction::Jump(0))?;
        let turn = self.push(Instruction::Turn(bounds(), 0))?;
        let body = self.next();
        self.node(node)?;
        self.push(Instruction::Jump(start as Place))?;
        let exit = self.next();
        self.instructions[start] = Instruction::Loop(bounds(), exit);
        self.instructions[jump] = Instruction::Jump(body);
        self.instructions[turn] = Instruction::Turn(bounds(), body);
        Ok(())
    }

    fn look(&mut self, node: &Node, behind: bool, negated: bool) -> Result<()> {
        let (height, position) = (self.register(), self.register());
        let start = match negated {
            false => self.push(Instruction::LookStart { height, position })?,
            true => self.push(Instruction::NegativeStart {
                height,
                position,
                exit: 0,
            })?,
        };
        if behind {
            let (min, max) = chars_of(node);
            let max = max.ok_or_else(Error::regexp_look_behind_limit)?;
            self.push(Instruction::Behind { min, max })?;
        }
        self.node(node)?;
        if behind {
            self.push(Instruction::BehindEnd(position))?;
        }
        if negated {
            self.push(Instruction::NegativeEnd(height))?;
            let exit = self.next();
            self.instructions[start] = Instruction::NegativeStart {
                height,
                position,
                exit,
            };
        } else {
            self.push(Instruction::LookEnd { height, position })?;
        }
        Ok(())
    }
}

/// How many characters a node matches, at least and at most.
pub(super) fn chars_of(node: &Node) -> (u32, Option<u32>) {
    match node {
        Node::Empty | Node::Look { .. } | Node::Assert(_) => (0, Some(0)),
        Node::Set(_) => (1, Some(1)),
        Node::Concat(nodes) => nodes.iter().map(chars_of).fold((0, Some(0)), |sum, one| {
            let max = sum.1.zip(one.1).and_then(|(a, b)| a.checked_add(b));
            (sum.0.saturating_add(one.0), max)
        }),
        Node::Alternate(arms) => {
            let bounds = || arms.iter().map(chars_of);
            let max = bounds().try_fold(0, |max, one| Some(one.1?.max(max)));
            (bounds().map(|one| one.0).min().unwrap_or(0), max)
        }
        Node::Repeat { node, min, max, .. } => {
            let one = chars_of(node);
            let most = max
                .zip(one.1)
                .and_then(|(times, len)| times.checked_mul(len));
            (one.0.saturating_mul(*min), most)
        }
        Node::Capture(_, node) | Node::Atomic(node) => chars_of(node),
        Node::BackReference { .. } => (0, None),
    }
}

fn is_anchored(node: &Node) -> bool {
    match node {
        Node::Assert(assertion) => *assertion == Assertion::StartOfText,
        Node::Concat(nodes) => nodes.first().is_some_and(is_anchored),
        Node::Alternate(arms) => arms.iter().all(is_anchored),
        Node::Capture(_, node) | Node::Atomic(node) => is_anchored(node),
        _ => false,
    }
}

/// Adds the bytes that a match of the node may begin with; `false` if it may be empty.
fn first_bytes(node: &Node, first: &mut [bool; 256]) -> bool {
    match node {
        Node::Set(class) => {
            for range in class.ranges() {
                let byte = |c: char| c.encode_utf8(&mut [0; 4]).as_bytes()[0];
                for byte in byte(range.start())..=byte(range.end()) {
                    first[usize::from(byte)] = true;
                }
            }
            true
        }
        Node::Concat(nodes) => nodes.iter().any(|node| first_bytes(node, first)),
        Node::Alternate(arms) => arms.iter().all(|arm| first_bytes(arm, first)),
        Node::Repeat { node, min, .. } => first_bytes(node, first) && *min > 0,
        Node::Capture(_, node) | Node::Atomic(node) => first_bytes(node, first),
        Node::Empty | Node::Look { .. } | Node::BackReference { .. } | Node::Assert(_) => false,
    }
}
