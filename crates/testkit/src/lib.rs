//! What tests and benchmarks of hart stand on: a scripted model, a fuzz runner, the checks of layers and docs.
//!
//! Invariant: it depends on no other hart crate, so every crate can use it in its tests without a cycle.

pub mod binary;
pub mod docs;
mod eventually;
pub mod fuzz;
mod host;
pub mod layering;
mod model_server;
mod request;
pub mod script;
#[cfg(feature = "sim")]
pub mod sim;
mod turn;
mod wire;
pub mod zip;

pub use eventually::{PATIENCE, eventually, eventually_here, in_time};
pub use model_server::ModelServer;
pub use request::{Dialect, RecordedRequest, ToolResult};
pub use script::{BenchModel, BenchScript};
pub use turn::Turn;
