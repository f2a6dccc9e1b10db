//! The native file operations, as plain functions over `std::fs`. They run inside a file worker, so the kernel's
//! boundary and not a check in here decides what they can reach.

pub(crate) mod change;
pub(crate) mod edit;
pub(crate) mod error;
pub(crate) mod fuzzy;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod patch;
pub(crate) mod patch_grammar;
pub(crate) mod patch_match;
pub(crate) mod read;
pub(crate) mod store;
pub(crate) mod text;
pub(crate) mod view_image;
pub(crate) mod walk;
pub(crate) mod write;

#[cfg(test)]
mod tests;

/// Largest file that is read whole, in bytes (50 MiB: a diff or a search over more is a command's work).
pub(crate) const MAX_FILE: u64 = 50 * 1024 * 1024;
/// Bytes at the start of a file in which a NUL means "binary" (as git and ripgrep do it).
pub(crate) const SNIFF: usize = 8 * 1024;
/// Bytes of text at the most in one answer (100 KB).
pub(crate) const MAX_OUTPUT: usize = 100 * 1000;
