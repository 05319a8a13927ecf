pub mod config;
mod env;

pub use env::Env;
