//! Listeners, event loop, sessions and authentication.
