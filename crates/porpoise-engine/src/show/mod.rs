//! SHOW and DESCRIBE.

pub mod create_text;
