//! Skills in real folders and real archives.

mod archives;
mod evolution;
mod fuzz;
mod layouts;
mod library;
mod shelf;
