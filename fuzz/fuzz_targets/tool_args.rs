#![no_main]
//! The tool-argument parser: an object or a reason, never a panic.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(reason) = hart_models::parse_tool_arguments(&String::from_utf8_lossy(bytes)) {
        assert!(!reason.is_empty());
    }
});
