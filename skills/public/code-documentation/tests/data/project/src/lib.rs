//! A library.

/// Documented.
#[derive(Debug)]
pub struct Good;

#[must_use]
pub fn bare() -> u8 { 1 }

/// Documented.
pub async fn good() {}

pub(crate) fn inner() {}
pub const LIMIT: u8 = 3;
