//! Conversion between Python and the crates below; no logic.
