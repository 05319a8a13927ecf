//! The testkit tested, and the two checks it makes of the whole repository: layers and documentation.
//!
//! Invariant: no test asserts a duration.

#[path = "suite/anthropic.rs"]
mod anthropic;
#[path = "suite/bench_script.rs"]
mod bench_script;
#[path = "suite/binary.rs"]
mod binary;
#[path = "suite/client.rs"]
mod client;
#[path = "suite/doc_snippets.rs"]
mod doc_snippets;
#[path = "suite/faults.rs"]
mod faults;
#[path = "suite/fuzz.rs"]
mod fuzz;
#[path = "suite/gemini.rs"]
mod gemini;
#[path = "suite/layering.rs"]
mod layering;
#[path = "suite/named_tests.rs"]
mod named_tests;
#[path = "suite/ollama.rs"]
mod ollama;
#[path = "suite/openai.rs"]
mod openai;
#[path = "suite/recording.rs"]
mod recording;
#[path = "suite/responses.rs"]
mod responses;
#[cfg(feature = "sim")]
#[path = "suite/sim.rs"]
mod sim;
