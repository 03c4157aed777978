//! Values, types, collations, decimal and temporal arithmetic, row and key encodings.
