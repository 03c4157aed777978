//! Load generator and experiments.
