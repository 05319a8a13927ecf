//! `read_file`: shows a text file, or some lines of it.
//!
//! Invariant: what is shown is the file's own text, byte for byte, so that it can be given to `str_replace`.

use std::sync::Arc;

use hart_kernel::{ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{SandboxError, VPath};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cut;
use crate::lenient::{Count, Purpose};
use crate::sandboxed::{Sandboxed, explain, failed};

pub(crate) struct ReadFile(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadFileArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// The absolute path of the file.
    path: String,
    /// The first line to show, counted from 1. Without it: from the beginning.
    start_line: Option<Count>,
    /// The last line to show, itself included. Without it: to the end.
    end_line: Option<Count>,
}

#[async_trait]
impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "\
Read a text file, or with start_line and end_line a range of its lines.

Use it before you change a file, and for uploads, skills and results. Long files are cut; the last line \
then says where to read on. Only UTF-8 text can be read: for images, PDF and other binary files use a \
program with bash. An empty file gives `(empty)`.";
    type Args = ReadFileArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: ReadFileArgs) -> Result<ToolOutput, ToolError> {
        let sandbox = self.0.acquire(cx).await?;
        let path = sandbox.path(&args.path).map_err(explain)?;
        let content = sandbox.read(&path).await.map_err(|error| match error {
            SandboxError::TooLarge { path, size, limit } => failed(format!(
                "`{path}` has {size} bytes, the limit is {limit}; find the place with grep, or read a part \
                 with bash, for example `sed -n '1,200p'` or `head -c 20000`"
            )),
            other => explain(other),
        })?;
        let text = as_text(&path, &content)?;
        if text.is_empty() {
            return Ok("(empty)".into());
        }
        let range = Range::new(args.start_line, args.end_line)?;
        render(&path, text, range, self.0.limits.read_chars).map(Into::into)
    }
}

/// 1-based, both ends included.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: usize,
    end: usize,
}

impl Range {
    fn new(start: Option<Count>, end: Option<Count>) -> Result<Self, ToolError> {
        let start = start.map_or(1, |Count(line)| line);
        let end = end.map_or(usize::MAX, |Count(line)| line);
        if start == 0 || end == 0 {
            return Err(failed("lines are counted from 1; give start_line and end_line of at least 1"));
        }
        if end < start {
            return Err(failed(format!("end_line {end} is before start_line {start}; swap them")));
        }
        Ok(Self { start, end })
    }
}

fn render(path: &VPath, text: &str, range: Range, limit: usize) -> Result<String, ToolError> {
    let total = text.split_inclusive('\n').count();
    if range.start > total {
        let lines = if total == 1 { "1 line".to_owned() } else { format!("{total} lines") };
        return Err(failed(format!(
            "start_line {} is beyond the end: `{path}` has {lines}; ask for a range from 1 to {total}",
            range.start
        )));
    }
    let last = range.end.min(total);
    let skipped = range.start.saturating_sub(1);
    let shown: String = text.split_inclusive('\n').skip(skipped).take(last - skipped).collect();
    if limit == 0 || shown.chars().count() <= limit {
        return Ok(shown);
    }
    let note = |to: usize| {
        format!(
            "... [truncated: showing lines {}-{to} of {total}; read on with start_line={}] ...",
            range.start,
            to.saturating_add(1)
        )
    };
    let (head, lines) = cut::whole_lines(&shown, limit.saturating_sub(note(total).chars().count()));
    if lines > 0 {
        return Ok(format!("{head}{}", note(skipped + lines)));
    }
    let first = shown.split_inclusive('\n').next().unwrap_or_default();
    let note = |shown: usize| {
        format!(
            "\n... [truncated: line {} alone has {} chars; read on in it with bash: `sed -n {}p '{path}' | \
             cut -c {}-`] ...",
            range.start,
            first.chars().count(),
            range.start,
            shown + 1
        )
    };
    let room = limit.saturating_sub(note(limit).chars().count());
    Ok(format!("{}{}", cut::first_chars(first, room), note(room)))
}

fn as_text<'a>(path: &VPath, content: &'a [u8]) -> Result<&'a str, ToolError> {
    let (kind, instead) = match std::str::from_utf8(content) {
        Ok(text) if !text.contains('\0') => return Ok(text),
        _ => kind_of(content),
    };
    Err(failed(format!("`{path}` is not UTF-8 text but {kind}, {} bytes; {instead}", content.len())))
}

/// What a file that is not text most likely is, and what to do with it.
fn kind_of(content: &[u8]) -> (&'static str, &'static str) {
    const IMAGE: &str = "look at it with a program in bash (for example Python with Pillow), or show it to \
        the user with present_files";
    const PROGRAM: &str = "examine it with a program in bash, for example `file` or `strings`";
    const MAGIC: [(&[u8], &str, &str); 13] = [
        (b"\x89PNG\r\n\x1a\n", "a PNG image", IMAGE),
        (b"\xff\xd8\xff", "a JPEG image", IMAGE),
        (b"GIF8", "a GIF image", IMAGE),
        (
            b"%PDF-",
            "a PDF document",
            "extract its text in bash, for example with `pdftotext` or Python with pypdf",
        ),
        (
            b"PK\x03\x04",
            "a ZIP archive or an Office document",
            "unpack it in bash with `unzip`, or open it with Python (python-docx, openpyxl, python-pptx)",
        ),
        (b"\x1f\x8b", "gzip data", "unpack it in bash with `gunzip` or `tar -xzf`"),
        (b"BZh", "bzip2 data", "unpack it in bash with `bunzip2` or `tar -xjf`"),
        (b"\xfd7zXZ\0", "xz data", "unpack it in bash with `unxz` or `tar -xJf`"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it in bash with `7z x`"),
        (b"SQLite format 3\0", "an SQLite database", "query it in bash with Python's sqlite3 module"),
        (b"\x7fELF", "a Linux program or library", PROGRAM),
        (
            b"\xff\xfe",
            "UTF-16 text",
            "convert it in bash with `iconv -f UTF-16 -t UTF-8`, then read the result",
        ),
        (
            b"\xfe\xff",
            "UTF-16 text",
            "convert it in bash with `iconv -f UTF-16 -t UTF-8`, then read the result",
        ),
    ];
    if let Some((_, kind, instead)) = MAGIC.iter().find(|(start, ..)| content.starts_with(start)) {
        return (kind, instead);
    }
    if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return ("a WebP image", IMAGE);
    }
    if content.contains(&0) {
        return ("binary data", PROGRAM);
    }
    (
        "text in another encoding",
        "convert it in bash, for example with `iconv -f ISO-8859-1 -t UTF-8` (`file` may know the \
         encoding), then read the result",
    )
}

#[cfg(test)]
#[path = "read_file_tests.rs"]
mod tests;
