//! One connection's statements: from text to the plan that runs, and what is kept between them.

mod state;

pub use state::SessionState;

pub struct Session {
    pub state: SessionState,
}
