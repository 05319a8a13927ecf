//! The tools as a model meets them: called by name with JSON, in a real sandbox.
//!
//! Invariant: every format that clients or models rely on is asserted to the letter.

#[cfg(test)]
mod ask_clarification;
#[cfg(test)]
mod background;
#[cfg(test)]
mod bash;
#[cfg(test)]
mod canary;
#[cfg(test)]
mod effects;
mod files;
#[cfg(test)]
mod place;
#[cfg(test)]
mod present_files;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod search;
