//! Reader-writer locks for metadata.
