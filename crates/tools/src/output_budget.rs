//! How much of a tool's result, or of a user's message, the model is shown, and where the rest goes. The section
//! `tool_output`.
//!
//! Where DeepAgents and DeerFlow differ, the defaults are DeepAgents': only what is really large (20 000 tokens) leaves
//! the conversation, for a place that is not among the user's files, and a preview shows whole lines. Each of
//! DeerFlow's keys keeps its meaning where it is set.
//!
//! Invariant: what is left out is said to be, with the path to read it at or the reason why there is none.

use std::collections::BTreeMap;

use hart_sandbox::{HISTORY, LARGE_RESULTS, PathError, VPath, result_path};
use serde::Deserialize;

use crate::cut;

/// The keys are DeerFlow's, but for `human_min_chars`; all counts are of characters, four to a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolOutputConfig {
    pub enabled: bool,
    /// From here on a result goes into a file.
    pub externalize_min_chars: usize,
    /// From here on a user's message goes into a file.
    pub human_min_chars: usize,
    /// With one of the two set, a preview is that many characters instead of the first and last lines.
    pub preview_head_chars: Option<usize>,
    pub preview_tail_chars: Option<usize>,
    /// Where there is no file to be had: from here on a result is cut. Without it, it stays whole.
    pub fallback_max_chars: Option<usize>,
    pub fallback_head_chars: usize,
    pub fallback_tail_chars: usize,
    /// A folder below the outputs, instead of `/large_tool_results`.
    pub storage_subdir: Option<String>,
    /// Tools that bound their results themselves and say how to read on.
    pub exempt_tools: Vec<String>,
    /// Another `externalize_min_chars` for some tools.
    pub tool_overrides: BTreeMap<String, usize>,
}

impl Default for ToolOutputConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            externalize_min_chars: 80_000,
            human_min_chars: 200_000,
            preview_head_chars: None,
            preview_tail_chars: None,
            fallback_max_chars: None,
            fallback_head_chars: 8000,
            fallback_tail_chars: 3000,
            storage_subdir: None,
            exempt_tools: vec!["read_file".to_owned(), "bash".to_owned()],
            tool_overrides: BTreeMap::new(),
        }
    }
}

/// What DeerFlow shows where only the other of the two is set.
const HEAD_CHARS: usize = 2000;
const TAIL_CHARS: usize = 1000;
/// Of each end of a preview.
const LINES: usize = 5;
const LINE_CHARS: usize = 1000;

impl ToolOutputConfig {
    /// Says what cannot work before a result finds out.
    pub fn validate(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        match self.storage_subdir.as_deref() {
            Some(name) if name.is_empty() || name == "." || name == ".." || !name.chars().all(plain) => {
                Err(format!("storage_subdir `{}` is not the plain name of a folder", name.escape_debug()))
            }
            _ => Ok(()),
        }
    }

    /// From how many characters on a result of this tool goes into a file; `None` if it never does.
    pub fn threshold(&self, tool: &str) -> Option<usize> {
        if self.exempt_tools.iter().any(|exempt| exempt == tool) {
            return None;
        }
        Some(self.tool_overrides.get(tool).copied().unwrap_or(self.externalize_min_chars))
    }

    /// Where the result of a call belongs.
    pub fn path(&self, tool: &str, run: &str, call: &str) -> Result<VPath, PathError> {
        match &self.storage_subdir {
            Some(folder) => {
                let extension = if matches!(tool, "bash" | "background") { "log" } else { "txt" };
                result_path(folder, tool, &format!("{run}:{call}"), extension)
            }
            None => VPath::parse(&format!("{LARGE_RESULTS}/{}", file_name(call, tool))),
        }
    }

    /// What is shown of a result that is in a file.
    pub fn preview(&self, text: &str, path: &VPath) -> String {
        if self.preview_head_chars.is_none() && self.preview_tail_chars.is_none() {
            return line_preview("result", text, path.as_str());
        }
        let head = self.preview_head_chars.unwrap_or(HEAD_CHARS);
        let tail = self.preview_tail_chars.unwrap_or(TAIL_CHARS);
        ends(text, head, tail, |skipped, total| {
            format!(
                "\n... [{skipped} of {total} chars left out; the whole result is in {path}: read it with read_file \
                 (start_line, end_line) or search it with grep] ...\n"
            )
        })
    }

    /// What is shown of a result for which there is no file; `None` if all of it is.
    pub fn fallback(&self, text: &str, why: &str) -> Option<String> {
        let limit = self.fallback_max_chars?;
        (text.chars().count() > limit).then(|| {
            ends(text, self.fallback_head_chars, self.fallback_tail_chars, |skipped, total| {
                format!(
                    "\n... [{skipped} of {total} chars left out; they could not be kept ({why}): ask for less at \
                     once] ...\n"
                )
            })
        })
    }
}

/// Where a user's message that is too long to be shown belongs.
pub fn long_message_path(message: &str) -> Result<VPath, PathError> {
    VPath::parse(&format!("{HISTORY}/{}.md", file_name(message, "message")))
}

/// The first and last lines of a text that is in a file, how many are missing, and how to read them.
pub fn line_preview(what: &str, text: &str, path: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let chars = text.chars().count();
    let shown = |lines: &[&str]| lines.iter().map(|line| short_line(line)).collect::<Vec<_>>().join("\n");
    let preview = match lines.len().checked_sub(2 * LINES) {
        None | Some(0) => shown(&lines),
        Some(omitted) => {
            let (head, rest) = lines.split_at_checked(LINES).unwrap_or((&lines, &[]));
            let (_, tail) = rest.split_at_checked(omitted).unwrap_or((rest, &[]));
            format!(
                "{}\n... [{omitted} lines left out: {} to {}] ...\n{}",
                shown(head),
                LINES + 1,
                LINES + omitted,
                shown(tail)
            )
        }
    };
    format!(
        "[This {what} is too long to be shown: {chars} characters in {} lines. All of it is in {path}: read it in \
         parts with read_file (start_line, end_line) or search it with grep. These are its first and last \
         lines.]\n\n{preview}",
        lines.len()
    )
}

fn short_line(line: &str) -> String {
    let shown = cut::first_chars(line, LINE_CHARS);
    match line.chars().count().saturating_sub(LINE_CHARS) {
        0 => line.to_owned(),
        more => format!("{shown}... [{more} more characters in this line]"),
    }
}

/// A foreign id as one plain name.
fn file_name(id: &str, otherwise: &str) -> String {
    const LONGEST: usize = 64;
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let id = if id.is_empty() { otherwise } else { id };
    id.chars().take(LONGEST).map(plain).collect()
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
#[path = "output_budget_tests.rs"]
mod tests;
