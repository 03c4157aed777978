//! Room on the stack for statements that nest deeply.
//!
//! Whoever parses, plans, executes or drops a statement recurses as deep as it nests, on a stack
//! that may be small: an embedding program chooses the sizes of its threads' stacks. The parser
//! counts how deep a statement is while it grows the stack every few levels; by then it is known
//! how much room whatever comes later needs, and it is made at once.
//!
//! ```text
//!   text ─► parse, at_level(0), at_level(1) … ─► Parsed::depth ─► reserve(depth) ─► plan, run, drop
//! ```

/// What recursion takes of the stack for each level, at most; without optimization frames are
/// several times as large.
const LEVEL_BYTES: usize = match cfg!(debug_assertions) {
    true => 64 << 10,
    false => 16 << 10,
};

/// What is to be free beside the levels.
const BASE_BYTES: usize = 128 << 10;

/// Up to this depth every stack has room.
pub const SHALLOW: u32 = 8;

/// From this depth on nobody relies on the thread's own stack, whose end is unknown where a program
/// runs the engine on a stack that it has made itself.
const DEEP: u32 = 100;

/// How many levels recursion goes before it looks for room again.
const STEP: u32 = 8;

/// Texts that can't nest so deep that dropping their trees needs much room.
const SHORT_TEXT_BYTES: usize = 512;

/// What dropping the deepest tree takes, at most.
const DROP_BYTES: usize = 1 << 20;

/// Runs `work` where there is room for recursion `depth` levels deep.
#[inline]
pub fn reserve<R>(depth: u32, work: impl FnOnce() -> R) -> R {
    match depth <= SHALLOW {
        true => work(),
        false => reserve_deep(depth, work),
    }
}

fn reserve_deep<R>(depth: u32, work: impl FnOnce() -> R) -> R {
    let bytes = BASE_BYTES + depth as usize * LEVEL_BYTES;
    match depth < DEEP {
        true => stacker::maybe_grow(bytes, bytes, work),
        false => stacker::grow(bytes, work),
    }
}

/// How many levels have room on the stack as it is.
pub fn levels_free() -> u32 {
    /// No stack is as large: the thread runs on one of which nothing is known.
    const UNKNOWN_BYTES: usize = 1 << 30;
    let bytes = match stacker::remaining_stack() {
        Some(bytes) if bytes < UNKNOWN_BYTES => bytes,
        _ => 0,
    };
    let levels = bytes.saturating_sub(BASE_BYTES) / LEVEL_BYTES;
    u32::try_from(levels).map_or(SHALLOW, |levels| levels.max(SHALLOW))
}

/// Runs `parse` where there is room to drop the deepest tree that a text of `length` bytes may give:
/// a text with an error at its end leaves one behind.
#[inline]
pub(crate) fn for_text<R>(length: usize, parse: impl FnOnce() -> R) -> R {
    match length <= SHORT_TEXT_BYTES {
        true => parse(),
        false => stacker::maybe_grow(DROP_BYTES, DROP_BYTES, parse),
    }
}

/// Runs `work`, which is level `level` of a recursion whose depth isn't known yet, at most
/// `level_max`.
#[inline]
pub(crate) fn at_level<R>(level: u32, level_max: u32, work: impl FnOnce() -> R) -> R {
    match level {
        DEEP => reserve_deep(level_max, work),
        1..DEEP if level.is_multiple_of(STEP) => reserve_deep(2 * STEP, work),
        _ => work(),
    }
}
