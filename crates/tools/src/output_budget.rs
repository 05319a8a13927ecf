//! How much of a tool's result the model is shown, and where the rest goes. The section `tool_output`.
//!
//! Invariant: what is left out is said to be, with the path to read it at or the reason why there is none.

use std::collections::BTreeMap;

use hart_sandbox::{PathError, RESULTS, VPath, result_path};
use serde::Deserialize;

use crate::cut;

/// The keys are DeerFlow's; all counts are of characters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolOutputConfig {
    pub enabled: bool,
    /// From here on a result goes into a file.
    pub externalize_min_chars: usize,
    pub preview_head_chars: usize,
    pub preview_tail_chars: usize,
    /// Where there is no file to be had: from here on a result is cut.
    pub fallback_max_chars: usize,
    pub fallback_head_chars: usize,
    pub fallback_tail_chars: usize,
    /// Below the outputs.
    pub storage_subdir: String,
    /// Tools that bound their results themselves and say how to read on.
    pub exempt_tools: Vec<String>,
    /// Another `externalize_min_chars` for some tools.
    pub tool_overrides: BTreeMap<String, usize>,
}

impl Default for ToolOutputConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            externalize_min_chars: 12_000,
            preview_head_chars: 2000,
            preview_tail_chars: 1000,
            fallback_max_chars: 30_000,
            fallback_head_chars: 8000,
            fallback_tail_chars: 3000,
            storage_subdir: RESULTS.to_owned(),
            exempt_tools: vec!["read_file".to_owned(), "bash".to_owned()],
            tool_overrides: BTreeMap::new(),
        }
    }
}

impl ToolOutputConfig {
    /// Says what cannot work before a result finds out.
    pub fn validate(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = self.storage_subdir.as_str();
        if name.is_empty() || name == "." || name == ".." || !name.chars().all(plain) {
            return Err(format!(
                "storage_subdir `{}` is not the plain name of a folder",
                name.escape_debug()
            ));
        }
        Ok(())
    }

    /// From how many characters on a result of this tool goes into a file; `None` if it never does.
    pub fn threshold(&self, tool: &str) -> Option<usize> {
        if self.exempt_tools.iter().any(|exempt| exempt == tool) {
            return None;
        }
        Some(self.tool_overrides.get(tool).copied().unwrap_or(self.externalize_min_chars))
    }

    /// Where the result of a call belongs.
    pub fn path(&self, tool: &str, seed: &str) -> Result<VPath, PathError> {
        let extension = if matches!(tool, "bash" | "background") { "log" } else { "txt" };
        result_path(&self.storage_subdir, tool, seed, extension)
    }

    /// What is shown of a result that is in a file.
    pub fn preview(&self, text: &str, path: &VPath) -> String {
        ends(text, self.preview_head_chars, self.preview_tail_chars, |skipped, total| {
            format!(
                "\n... [{skipped} of {total} chars left out; the whole result is in {path}: read it with read_file \
                 (start_line, end_line) or search it with grep] ...\n"
            )
        })
    }

    /// What is shown of a result for which there is no file; `None` if all of it is.
    pub fn fallback(&self, text: &str, why: &str) -> Option<String> {
        (text.chars().count() > self.fallback_max_chars).then(|| {
            ends(text, self.fallback_head_chars, self.fallback_tail_chars, |skipped, total| {
                format!(
                    "\n... [{skipped} of {total} chars left out; they could not be kept ({why}): ask for less at \
                     once] ...\n"
                )
            })
        })
    }
}

fn ends(text: &str, head: usize, tail: usize, note: impl Fn(usize, usize) -> String) -> String {
    let total = text.chars().count();
    let skipped = total.saturating_sub(head.saturating_add(tail));
    if skipped == 0 {
        return text.to_owned();
    }
    format!("{}{}{}", cut::first_chars(text, head), note(skipped, total), cut::last_chars(text, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_adds_up_and_names_the_file() {
        let budget = ToolOutputConfig::default();
        let path = budget.path("web fetch/../x", "run:call").unwrap();
        assert!(path.as_str().starts_with("/mnt/user-data/outputs/.tool-results/web_fetch____x-"), "{path}");
        assert!(path.as_str().ends_with(".txt"));
        let text = "ä".repeat(9000) + &"z".repeat(9000);
        let shown = budget.preview(&text, &path);
        assert!(shown.starts_with(&"ä".repeat(2000)) && shown.ends_with(&"z".repeat(1000)));
        assert!(
            shown.contains("\n... [15000 of 18000 chars left out; the whole result is in /mnt/user-data/")
        );
        assert_eq!(budget.fallback(&text, "no sandbox"), None);
        let long = budget.fallback(&text.repeat(2), "no sandbox").unwrap();
        assert!(
            long.contains("[25000 of 36000 chars left out; they could not be kept (no sandbox)"),
            "{long}"
        );
    }

    #[test]
    fn tools_may_have_their_own_threshold() {
        let json = serde_json::json!({"tool_overrides": {"grep": 50}, "exempt_tools": ["x"]});
        let budget: ToolOutputConfig = serde_json::from_value(json).unwrap();
        assert_eq!(budget.threshold("grep"), Some(50));
        assert_eq!(budget.threshold("read_file"), Some(12_000));
        assert_eq!(budget.threshold("x"), None);
    }

    #[test]
    fn a_folder_is_a_plain_name() {
        for bad in ["", ".", "..", "a/b", "../x", "a b", "ä"] {
            let config = ToolOutputConfig { storage_subdir: bad.to_owned(), ..ToolOutputConfig::default() };
            assert!(config.validate().is_err(), "{bad:?}");
        }
        assert_eq!(ToolOutputConfig::default().validate(), Ok(()));
    }
}
