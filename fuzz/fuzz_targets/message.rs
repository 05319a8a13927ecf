#![no_main]
//! The message decoder: what it accepts, it writes back so that reading it again gives the same message.

use hart_types::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = serde_json::from_slice::<Message>(bytes) {
        let json = serde_json::to_vec(&message).unwrap();
        assert_eq!(serde_json::from_slice::<Message>(&json).unwrap(), message);
        let _ = message.text();
    }
});
