//! Skills in real folders and real archives.

mod archives;
mod evolution;
mod layouts;
mod library;
mod shelf;
