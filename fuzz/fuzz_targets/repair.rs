#![no_main]
//! The JSON repair: a value or a place, never a panic; what is valid stays, and what was mended stays mended.

use hart_models::repair;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let valid = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
    match (repair(&text), valid) {
        (Ok(read), Some(valid)) => assert!(!read.repaired && read.value == valid),
        (Ok(read), None) => {
            let again = repair(&read.value.to_string()).expect("what was read can be read again");
            assert!(!again.repaired || !read.value.is_object());
        }
        (Err(error), valid) => assert!(valid.is_none() && error.line > 0),
    }
});
