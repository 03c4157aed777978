//! The backtracking matcher: for patterns with look-around, back references and the like, and where
//! the linear one gives up.
//!
//! It follows the first of several ways and notes the others on a stack of its own, with what the
//! registers held. Both may grow without bound: `regexp_stack_limit` bounds the stack (3698), and
//! `regexp_time_limit` how many ways are noted, in steps of ten thousand (3699). KILL is heeded
//! all the time.

use std::sync::LazyLock;

use super::Look;
use super::program::{CharSet, Instruction, LoopBounds, NOWHERE, Place, Program, Register};
use super::syntax::{Assertion, Repetition};
use porpoise_core::error::{Error, Result};

/// How many ways make a step of `regexp_time_limit`: some tenths of a millisecond.
const ENTRIES_PER_STEP: u64 = 10_000;
/// How much is done between two looks whether the statement is to end.
const WORK_BETWEEN_LOOKS: usize = 1 << 16;

/// What one search may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// `regexp_time_limit`; 0 for none.
    pub steps: u64,
    /// `regexp_stack_limit`; 0 for none.
    pub stack_bytes: u64,
}

/// Something to go back to.
enum Entry {
    /// Another way.
    Way { place: Place, position: usize },
    /// What a register held.
    Held { register: Register, value: usize },
    /// A span may give characters back, down to `low`.
    Shorter {
        place: Place,
        low: usize,
        high: usize,
    },
    /// A lazy span may take more characters.
    Longer {
        place: Place,
        set: u32,
        position: usize,
        left: u32,
    },
    /// A look behind may begin further to the left.
    Further {
        place: Place,
        start: usize,
        left: u32,
    },
}

pub(super) struct Matcher<'a> {
    program: &'a Program,
    text: &'a str,
    look: Look<'a>,
    entries_max: u64,
    entries_in_stack_max: usize,
    registers: Vec<usize>,
    stack: Vec<Entry>,
    /// Ways that were noted in this search.
    entries: u64,
    /// What was done since the last look.
    work: usize,
    search_start: usize,
}

fn char_at(text: &str, position: usize) -> Option<char> {
    match text.as_bytes().get(position) {
        Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
        Some(_) => text[position..].chars().next(),
        None => None,
    }
}

fn char_before(text: &str, position: usize) -> Option<char> {
    text[..position].chars().next_back()
}

fn ends_line(c: char, unix: bool) -> bool {
    match unix {
        true => c == '\n',
        false => matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}'),
    }
}

fn is_word(c: char) -> bool {
    regex_syntax::is_word_character(c)
}

/// Whether a mark belongs to the character before it.
fn is_mark(c: char) -> bool {
    static MARKS: LazyLock<CharSet> = LazyLock::new(CharSet::marks);
    !c.is_ascii() && MARKS.contains(c)
}

impl<'a> Matcher<'a> {
    pub fn new(program: &'a Program, text: &'a str, limits: Limits, look: Look<'a>) -> Matcher<'a> {
        let of = |limit: u64, one: u64| match limit {
            0 => u64::MAX,
            limit => limit.saturating_mul(one),
        };
        let stack = of(limits.stack_bytes, 1) / size_of::<Entry>() as u64;
        Matcher {
            program,
            text,
            look,
            entries_max: of(limits.steps, ENTRIES_PER_STEP),
            entries_in_stack_max: usize::try_from(stack).unwrap_or(usize::MAX),
            registers: Vec::new(),
            stack: Vec::new(),
            entries: 0,
            work: 0,
            search_start: 0,
        }
    }

    /// The first match that begins at `from` or behind: where each group lies, as pairs; the first
    /// is the whole.
    pub fn find(&mut self, from: usize) -> Result<Option<&[usize]>> {
        (self.search_start, self.entries) = (from, 0);
        let program = self.program;
        if program.is_anchored {
            return match from == 0 && self.matches_at(0)? {
                true => Ok(Some(self.groups())),
                false => Ok(None),
            };
        }
        let mut start = from;
        loop {
            if let Some(first) = &program.first {
                match self.skip(first, start)? {
                    Some(next) => start = next,
                    None => return Ok(None),
                }
            }
            if self.matches_at(start)? {
                return Ok(Some(self.groups()));
            }
            match char_at(self.text, start) {
                Some(c) => start += c.len_utf8(),
                None => return Ok(None),
            }
        }
    }

    /// Where the next byte lies that a match may begin with.
    fn skip(&mut self, first: &[bool; 256], mut start: usize) -> Result<Option<usize>> {
        loop {
            let rest = &self.text.as_bytes()[start..];
            let piece = &rest[..rest.len().min(WORK_BETWEEN_LOOKS)];
            if let Some(skipped) = piece.iter().position(|byte| first[usize::from(*byte)]) {
                self.walk(skipped >> 4)?;
                return Ok(Some(start + skipped));
            }
            if piece.len() == rest.len() {
                return Ok(None);
            }
            start += piece.len();
            self.walk(WORK_BETWEEN_LOOKS)?;
        }
    }

    fn groups(&self) -> &[usize] {
        &self.registers[..2 * (self.program.groups as usize + 1)]
    }

    /// So much work was done.
    #[inline]
    fn walk(&mut self, work: usize) -> Result<()> {
        self.work += work;
        if self.work < WORK_BETWEEN_LOOKS {
            return Ok(());
        }
        self.work = 0;
        (self.look)()
    }

    #[inline]
    fn push(&mut self, entry: Entry) -> Result<()> {
        self.entries += 1;
        if self.entries > self.entries_max {
            return Err(Error::regexp_timeout());
        }
        self.keep(entry)
    }

    #[inline]
    fn keep(&mut self, entry: Entry) -> Result<()> {
        if self.stack.len() >= self.entries_in_stack_max {
            return Err(Error::regexp_stack_overflow());
        }
        self.stack.push(entry);
        Ok(())
    }

    fn hold(&mut self, register: Register, value: usize) -> Result<()> {
        let held = std::mem::replace(&mut self.registers[register as usize], value);
        self.keep(Entry::Held {
            register,
            value: held,
        })
    }

    fn held(&self, register: Register) -> usize {
        self.registers[register as usize]
    }

    /// Whether there is a match that begins exactly there.
    pub fn matches_at(&mut self, start: usize) -> Result<bool> {
        self.stack.clear();
        self.registers.clear();
        self.registers
            .resize(self.program.registers as usize, NOWHERE);
        self.registers[0] = start;
        let mut state = Some((0, start));
        loop {
            self.walk(1)?;
            state = match state {
                Some((place, position)) => match self.step(place, position)? {
                    Step::To(place, position) => Some((place, position)),
                    Step::Fail => self.back()?,
                    Step::Matched => {
                        self.registers[1] = position;
                        return Ok(true);
                    }
                },
                None => return Ok(false),
            };
        }
    }

    /// The newest way that was not tried, if there is one.
    fn back(&mut self) -> Result<Option<(Place, usize)>> {
        while let Some(entry) = self.stack.pop() {
            self.work += 1;
            match entry {
                Entry::Held { register, value } => self.registers[register as usize] = value,
                Entry::Way { place, position } => return Ok(Some((place, position))),
                Entry::Shorter { place, low, high } => {
                    let shorter = char_before(self.text, high).map_or(low, |c| high - c.len_utf8());
                    if shorter > low {
                        self.push(Entry::Shorter {
                            place,
                            low,
                            high: shorter,
                        })?;
                    }
                    return Ok(Some((place, shorter)));
                }
                Entry::Longer {
                    place,
                    set,
                    position,
                    left,
                } => {
                    let next = char_at(self.text, position);
                    let set_of = &self.program.sets[set as usize];
                    if let Some(c) = next.filter(|c| set_of.contains(*c)) {
                        let position = position + c.len_utf8();
                        if left > 1 {
                            self.push(Entry::Longer {
                                place,
                                set,
                                position,
                                left: left - 1,
                            })?;
                        }
                        return Ok(Some((place, position)));
                    }
                }
                Entry::Further { place, start, left } => {
                    if let Some(c) = char_before(self.text, start) {
                        let start = start - c.len_utf8();
                        if left > 1 {
                            self.push(Entry::Further {
                                place,
                                start,
                                left: left - 1,
                            })?;
                        }
                        return Ok(Some((place, start)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Forgets the ways above a height of the stack, and keeps what registers held.
    fn cut(&mut self, height: usize) {
        let mut kept = height;
        for at in height..self.stack.len() {
            if matches!(self.stack[at], Entry::Held { .. }) {
                self.stack.swap(kept, at);
                kept += 1;
            }
        }
        self.work += self.stack.len() - height;
        self.stack.truncate(kept);
    }

    /// Goes back to a height of the stack, whatever ways are above it.
    fn unwind(&mut self, height: usize) {
        while self.stack.len() > height {
            if let Some(Entry::Held { register, value }) = self.stack.pop() {
                self.registers[register as usize] = value;
            }
            self.work += 1;
        }
    }

    fn step(&mut self, place: Place, position: usize) -> Result<Step> {
        let next = place + 1;
        let program = self.program;
        Ok(match &program.instructions[place as usize] {
            Instruction::Set(set) => match char_at(self.text, position) {
                Some(c) if program.sets[*set as usize].contains(c) => {
                    Step::To(next, position + c.len_utf8())
                }
                _ => Step::Fail,
            },
            Instruction::Span {
                set,
                min,
                max,
                kind,
            } => return self.span(next, position, *set, (*min, *max), *kind),
            Instruction::Split(first, second) => {
                self.push(Entry::Way {
                    place: *second,
                    position,
                })?;
                Step::To(*first, position)
            }
            Instruction::Jump(to) => Step::To(*to, position),
            Instruction::Save(register) => {
                self.hold(*register, position)?;
                Step::To(next, position)
            }
            Instruction::Assert(assertion) => match self.holds(*assertion, position) {
                true => Step::To(next, position),
                false => Step::Fail,
            },
            Instruction::BackReference { group, ignore_case } => {
                return self.back_reference(next, position, *group, *ignore_case);
            }
            Instruction::EnterLoop(bounds) => {
                self.hold(bounds.began, NOWHERE)?;
                if let Some(turns) = bounds.turns {
                    self.hold(turns, 0)?;
                }
                Step::To(next, position)
            }
            Instruction::Loop(bounds, exit) => {
                return self.go_round(bounds, place, *exit, position);
            }
            Instruction::Turn(bounds, body) => {
                self.turn(bounds, position)?;
                Step::To(*body, position)
            }
            _ => return self.look(place, position),
        })
    }

    /// The instructions of atomic groups and look-arounds, and the last one.
    fn look(&mut self, place: Place, position: usize) -> Result<Step> {
        let next = place + 1;
        Ok(match &self.program.instructions[place as usize] {
            Instruction::AtomicStart(height) => {
                self.hold(*height, self.stack.len() + 1)?;
                Step::To(next, position)
            }
            Instruction::AtomicEnd(height) => {
                self.cut(self.held(*height));
                Step::To(next, position)
            }
            Instruction::LookStart {
                height,
                position: register,
            } => {
                self.hold(*register, position)?;
                self.hold(*height, self.stack.len() + 1)?;
                Step::To(next, position)
            }
            Instruction::LookEnd {
                height,
                position: register,
            } => {
                self.cut(self.held(*height));
                Step::To(next, self.held(*register))
            }
            Instruction::NegativeStart {
                height,
                position: register,
                exit,
            } => {
                self.hold(*register, position)?;
                self.hold(*height, self.stack.len() + 1)?;
                self.push(Entry::Way {
                    place: *exit,
                    position,
                })?;
                Step::To(next, position)
            }
            Instruction::NegativeEnd(height) => {
                self.unwind(self.held(*height));
                Step::Fail
            }
            Instruction::Behind { min, max } => {
                let mut before = self.text[..position].char_indices().rev();
                let start = match *min {
                    0 => Some(position),
                    min => before.nth(min as usize - 1).map(|(start, _)| start),
                };
                self.work += *min as usize;
                let Some(start) = start else {
                    return Ok(Step::Fail);
                };
                if max > min {
                    self.push(Entry::Further {
                        place: next,
                        start,
                        left: max - min,
                    })?;
                }
                Step::To(next, start)
            }
            Instruction::BehindEnd(register) => match position == self.held(*register) {
                true => Step::To(next, position),
                false => Step::Fail,
            },
            _ => Step::Matched,
        })
    }

    fn span(
        &mut self,
        next: Place,
        position: usize,
        set: u32,
        (min, max): (u32, u32),
        kind: Repetition,
    ) -> Result<Step> {
        let wanted = match kind {
            Repetition::Lazy => min,
            Repetition::Greedy | Repetition::Possessive => max,
        };
        let chars = &self.program.sets[set as usize];
        let (mut end, mut low, mut count) = (position, position, 0);
        while count < wanted
            && let Some(c) = char_at(self.text, end)
            && chars.contains(c)
        {
            end += c.len_utf8();
            count += 1;
            if count <= min {
                low = end;
            }
            if count % (1 << 16) == 0 {
                self.walk(1 << 14)?;
            }
        }
        self.work += count as usize >> 2 & 0x3FFF;
        if count < min {
            return Ok(Step::Fail);
        }
        match kind {
            Repetition::Lazy if max > min => self.push(Entry::Longer {
                place: next,
                set,
                position: end,
                left: max - min,
            })?,
            Repetition::Greedy if end > low => self.push(Entry::Shorter {
                place: next,
                low,
                high: end,
            })?,
            _ => {}
        }
        Ok(Step::To(next, end))
    }

    /// Before a turn of a loop: whether there is another, and what is tried first.
    fn go_round(
        &mut self,
        bounds: &LoopBounds,
        place: Place,
        exit: Place,
        position: usize,
    ) -> Result<Step> {
        // The jump over the instruction that makes a lazy loop's turn, which is behind it.
        let (body, turn) = (place + 1, place + 2);
        let began = self.held(bounds.began);
        // A turn that matched nothing can be made any number of times.
        if began == position {
            return Ok(Step::To(exit, position));
        }
        let turns = match bounds.turns {
            Some(turns) => self.held(turns) as u64,
            None => u64::from(began != NOWHERE),
        };
        if turns < u64::from(bounds.min) {
            self.turn(bounds, position)?;
            return Ok(Step::To(body, position));
        }
        if bounds.max.is_some_and(|max| turns >= u64::from(max)) {
            return Ok(Step::To(exit, position));
        }
        if bounds.is_lazy {
            self.push(Entry::Way {
                place: turn,
                position,
            })?;
            return Ok(Step::To(exit, position));
        }
        self.push(Entry::Way {
            place: exit,
            position,
        })?;
        self.turn(bounds, position)?;
        Ok(Step::To(body, position))
    }

    fn turn(&mut self, bounds: &LoopBounds, position: usize) -> Result<()> {
        self.hold(bounds.began, position)?;
        match bounds.turns {
            Some(turns) => self.hold(turns, self.held(turns) + 1),
            None => Ok(()),
        }
    }

    fn back_reference(
        &mut self,
        next: Place,
        position: usize,
        group: u32,
        ignore_case: bool,
    ) -> Result<Step> {
        let (start, end) = (self.held(2 * group), self.held(2 * group + 1));
        if start == NOWHERE || end == NOWHERE || end < start {
            return Ok(Step::Fail);
        }
        let (text, wanted) = (self.text, &self.text[start..end]);
        let rest = &text[position..];
        self.walk(wanted.len())?;
        if !ignore_case {
            return Ok(match rest.starts_with(wanted) {
                true => Step::To(next, position + wanted.len()),
                false => Step::Fail,
            });
        }
        let mut found = rest.chars();
        let same = |a: char, b: char| a == b || a.to_lowercase().eq(b.to_lowercase());
        for c in wanted.chars() {
            if !found.next().is_some_and(|other| same(c, other)) {
                return Ok(Step::Fail);
            }
        }
        Ok(Step::To(next, text.len() - found.as_str().len()))
    }

    fn holds(&self, assertion: Assertion, position: usize) -> bool {
        let (text, len) = (self.text, self.text.len());
        let (before, after) = (|| char_before(text, position), || char_at(text, position));
        match assertion {
            Assertion::StartOfText => position == 0,
            Assertion::EndOfText => position == len,
            Assertion::StartOfSearch => position == self.search_start,
            Assertion::BeforeFinalLineEnd { unix } => {
                position == len || {
                    let within_pair = before() == Some('\r') && after() == Some('\n') && !unix;
                    let rest = &text[position..];
                    let ends = match rest == "\r\n" && !unix {
                        true => true,
                        false => after()
                            .is_some_and(|c| ends_line(c, unix) && position + c.len_utf8() == len),
                    };
                    ends && !within_pair
                }
            }
            Assertion::StartOfLine { unix } => {
                // Behind the last line end no line begins.
                position == 0
                    || (position < len
                        && before().is_some_and(|c| ends_line(c, unix))
                        && !(before() == Some('\r') && after() == Some('\n') && !unix))
            }
            Assertion::EndOfLine { unix } => {
                position == len
                    || (after().is_some_and(|c| ends_line(c, unix))
                        && !(before() == Some('\r') && after() == Some('\n') && !unix))
            }
            Assertion::WordBoundary => self.is_word_boundary(position),
            Assertion::NotWordBoundary => !self.is_word_boundary(position),
        }
    }

    /// Between a word and what is none. Marks belong to what they stand behind.
    fn is_word_boundary(&self, position: usize) -> bool {
        let after = char_at(self.text, position);
        if after.is_some_and(is_mark) {
            return false;
        }
        let mut before = self.text[..position].chars().rev();
        let before = before.find(|c| !is_mark(*c));
        before.is_some_and(is_word) != after.is_some_and(is_word)
    }
}

/// What an instruction leads to.
enum Step {
    To(Place, usize),
    Fail,
    Matched,
}
