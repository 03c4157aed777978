//! One database: its storage, catalog, variables and sessions.

use arc_swap::ArcSwap;
use porpoise_storage::Store;

use crate::catalog::Catalog;

/// What all sessions of a database share.
pub struct Shared {
    pub store: Store,
    pub catalog: ArcSwap<Catalog>,
}

/// A running database.
#[derive(Clone)]
pub struct Engine {
    pub shared: std::sync::Arc<Shared>,
}

pub struct EngineOptions {
    pub location: porpoise_storage::Location,
    /// Start-up values of system variables, by name.
    pub variables: Vec<(String, String)>,
}
