//! `hart backup`: a copy of what is remembered, while everything goes on.
//!
//! Invariant: nothing that is there is overwritten.

use std::path::PathBuf;

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  hart backup hart-$(date +%F).db

The copy has all threads and runs, of one moment, also while hart works. To go
back: stop hart, put it in the place of hart.db in the data directory, and
remove hart.db-wal and hart.db-shm. The files of threads are below `users` in the
data directory; copy them as any others.";

/// Copy the database with all threads and runs to a file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackupArgs {
    /// The file to make; one that is there is not overwritten.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &BackupArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open(global, terminal)?;
    let file = args.file.display();
    if !session.has_data() {
        let home = session.app.home().display();
        return Err(Failure::usage(format!("there is nothing to back up in {home}"))
            .help("set HART_HOME to the data directory that is meant"));
    }
    if args.file.exists() {
        return Err(Failure::usage(format!("{file} exists already")).help("name another file"));
    }
    session.block_on(session.app.backup(&args.file))?.map_err(Failure::failed)?;
    terminal.note(&format!("all threads and runs are in {file}"));
    Ok(Exit::Done)
}
