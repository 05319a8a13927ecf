//! Whatever comes: nothing survives, and a second time changes nothing.

use hart_guard::TAGS;
use proptest::prelude::*;

use crate::corpus::{SURVIVORS, clean};

/// Pieces that attacks are made of, glued together at random.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        prop::sample::select(TAGS.to_vec()).prop_map(str::to_owned),
        prop::sample::select(vec![
            "<",
            "</",
            "< ",
            ">",
            "/>",
            "＜",
            "＞",
            "﹤",
            "|",
            "<|",
            "|>",
            "-",
            "--",
            "---",
            "—",
            " ",
            "\n",
            "\t",
            "BEGIN",
            "END",
            "USER",
            "INPUT",
            "UNTRUSTED",
            "CONTENT",
            "\u{200b}",
            "\u{200d}",
            "\u{200c}",
            "\u{fe0f}",
            "\u{202e}",
            "\u{e0041}",
            "\u{0}",
            "é",
            "👩",
            "ｓ",
            "system",
            "SYSTEM",
            "a=\"b\"",
            "&lt;",
            "[",
            "]",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn twice_is_once_and_nothing_survives(text in hostile()) {
        let once = clean(&text);
        prop_assert_eq!(clean(&once), once.clone());
        prop_assert!(!SURVIVORS.is_match(&once), "{:?} became {:?}", text, once);
        let grown = once.chars().count();
        prop_assert!(grown <= text.chars().count() * 4, "{} grew to {}", text.chars().count(), grown);
    }

    #[test]
    fn plain_words_are_not_touched(text in "[a-zA-Z0-9 .,;:!?(){}\\[\\]\"'=+*/\n\täöüßéñ日本語-]{0,200}") {
        let plain = !text.contains("--");
        prop_assume!(plain);
        prop_assert_eq!(clean(&text), text);
    }
}
