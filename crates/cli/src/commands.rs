//! One module per subcommand, each in the same order: its arguments, its `run`, its helpers.
//!
//! Invariant: a command writes through the [`Terminal`](crate::terminal::Terminal) it is given and reports by its
//! [`Exit`](crate::failure::Exit); it never ends the process.

pub(crate) mod backup;
pub(crate) mod chaos;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod models;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod skills;
pub(crate) mod threads;
