//! `read_file`: shows a text file, or some lines of it.
//!
//! Invariant: what is shown is the file's own text, byte for byte, so that it can be given to `str_replace`.

use std::sync::Arc;

use hart_kernel::{Effect, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{LineQuery, Lines, SandboxError, VPath};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cut;
use crate::lenient::{Count, Purpose};
use crate::sandboxed::{Sandboxed, explain, failed, missing};

pub(crate) struct ReadFile(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadFileArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// The absolute path of the file.
    #[serde(alias = "file_path")]
    path: String,
    /// The first line to show, counted from 1. Without it: from the beginning.
    start_line: Option<Count>,
    /// The last line to show, itself included. Without it: to the end.
    end_line: Option<Count>,
    // DeepAgents' way to say it: lines to skip, and how many to show.
    #[schemars(skip)]
    offset: Option<Count>,
    #[schemars(skip)]
    limit: Option<Count>,
}

#[async_trait]
impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "\
Read a text file, or with start_line and end_line a range of its lines.

Use it before you change a file, and for uploads, skills and results. Files of any size can be read in \
ranges. What is too long is cut; the last line then says where to read on. Only UTF-8 text can be read: for images, PDF and other binary files use a \
program with bash. An empty file gives `(empty)`.";
    const EFFECT: Effect = Effect::Pure;
    type Args = ReadFileArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: ReadFileArgs) -> Result<ToolOutput, ToolError> {
        let sandbox = self.0.acquire(cx).await?;
        let path = sandbox.path(&args.path).map_err(explain)?;
        let range = Range::new(&args)?;
        let limit = self.0.limits.read_chars;
        // A character has at most four bytes; one more than fits shows that something is cut.
        let max_bytes = if limit == 0 { UNLIMITED } else { limit.saturating_mul(4).saturating_add(4) };
        let query = LineQuery { first: range.start as u64, last: range.end as u64, max_bytes };
        let lines = match sandbox.read_lines(&path, query).await {
            Err(SandboxError::NotFound(path)) => return Err(missing(sandbox.as_ref(), path).await),
            other => other.map_err(explain)?,
        };
        if lines.size == 0 && lines.head.is_empty() {
            return Ok("(empty)".into());
        }
        let text = as_text(&path, &lines)?;
        render(&path, text, &lines, range, if limit == 0 { UNLIMITED } else { limit }).map(Into::into)
    }
}

/// What the configuration's "no limit" comes to: an answer must fit into memory.
const UNLIMITED: usize = 100 << 20;

/// 1-based, both ends included.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: usize,
    end: usize,
}

impl Range {
    fn new(args: &ReadFileArgs) -> Result<Self, ToolError> {
        let count = |given: Option<Count>| given.map(|Count(count)| count);
        let skipped = count(args.offset).unwrap_or(0);
        let start = count(args.start_line).unwrap_or(skipped.saturating_add(1));
        let last = |limit: usize| start.saturating_add(limit).saturating_sub(1);
        let end = count(args.end_line).or(count(args.limit).map(last)).unwrap_or(usize::MAX);
        if start == 0 || end == 0 {
            return Err(failed("lines are counted from 1; give start_line and end_line of at least 1"));
        }
        if args.end_line.is_none() && count(args.limit) == Some(0) {
            return Err(failed("limit is 0, so no line was asked for; give at least 1"));
        }
        if end < start {
            return Err(failed(format!("end_line {end} is before start_line {start}; swap them")));
        }
        Ok(Self { start, end })
    }
}

fn render(path: &VPath, text: &str, lines: &Lines, range: Range, limit: usize) -> Result<String, ToolError> {
    if lines.total.is_some_and(|total| range.start as u64 > total) {
        let total = lines.at_least;
        let lines = if total == 1 { "1 line".to_owned() } else { format!("{total} lines") };
        return Err(failed(format!(
            "start_line {} is beyond the end: `{path}` has {lines}; ask for a range from 1 to {total}",
            range.start
        )));
    }
    if !lines.cut && text.chars().count() <= limit {
        // Some providers refuse an answer that is only white space, and nobody can see it.
        let is_blank = text.trim().is_empty();
        return Ok(if is_blank {
            format!("(only white space, {} bytes)", text.len())
        } else {
            text.to_owned()
        });
    }
    let total = match lines.total {
        Some(total) => total.to_string(),
        None => format!("more than {}", lines.at_least),
    };
    let note = |to: usize| {
        format!(
            "... [truncated: showing lines {}-{to} of {total}; read on with start_line={}] ...",
            range.start,
            to.saturating_add(1)
        )
    };
    let widest = usize::try_from(lines.at_least).unwrap_or(usize::MAX);
    let (head, count) = cut::whole_lines(text, limit.saturating_sub(note(widest).chars().count()));
    if count > 0 {
        return Ok(format!("{head}{}", note(range.start + count - 1)));
    }
    let quoted = path.as_str().replace('\'', r"'\''");
    let next = range.start.saturating_add(1);
    let is_last = lines.total == Some(range.start as u64);
    let more = if is_last { String::new() } else { format!("; the line after it is start_line={next}") };
    // In bytes: `cut -c` and the like count those, whatever their names say.
    let note = |bytes: usize| {
        format!(
            "\n... [truncated: line {} alone has {} chars; read on in it with bash: `sed -n {}p '{quoted}' | tail -c \
             +{} | head -c {PIECE}`{more}] ...",
            range.start,
            lines.first_line_chars,
            range.start,
            bytes + 1
        )
    };
    let room = limit.saturating_sub(note(limit.saturating_mul(4)).chars().count());
    let head = cut::first_chars(text, room);
    Ok(format!("{head}{}", note(head.len())))
}

/// Bytes of a long line that are worth a look at once.
const PIECE: usize = 20_000;

/// The wanted lines as text, if the file is text as far as one sees.
fn as_text<'a>(path: &VPath, lines: &'a Lines) -> Result<&'a str, ToolError> {
    let head_is_cut = (lines.head.len() as u64) < lines.size;
    let head_is_text = valid(&lines.head, head_is_cut).is_some_and(|head| !head.contains('\0'));
    let document = lines.head.starts_with(b"%PDF-");
    match valid(&lines.text, lines.cut) {
        Some(text) if !document && head_is_text && !text.contains('\0') => Ok(text),
        _ => {
            let evidence = if document || !head_is_text { &lines.head } else { &lines.text };
            let (kind, instead) = kind_of(evidence);
            Err(failed(format!("`{path}` is not UTF-8 text but {kind}, {} bytes; {instead}", lines.size)))
        }
    }
}

/// The bytes as text; where they were cut, without a character that lost its end.
fn valid(bytes: &[u8], cut: bool) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if cut && error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok())
        }
        Err(_) => None,
    }
}

/// What a file that is not text most likely is, and what to do with it.
fn kind_of(content: &[u8]) -> (&'static str, &'static str) {
    const IMAGE: &str = "look at it with a program in bash (for example Python with Pillow), or show it to \
        the user with present_files";
    const PICTURED: &str = "examine it with a program in bash, for example `ffprobe`, or show it to the user with \
        present_files";
    const PROGRAM: &str = "examine it with a program in bash, for example `file` or `strings`";
    const MAGIC: [(&[u8], &str, &str); 24] = [
        (b"\x89PNG\r\n\x1a\n", "a PNG image", IMAGE),
        (b"\xff\xd8\xff", "a JPEG image", IMAGE),
        (b"GIF8", "a GIF image", IMAGE),
        (b"BM", "a BMP image", IMAGE),
        (b"II*\0", "a TIFF image", IMAGE),
        (b"MM\0*", "a TIFF image", IMAGE),
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
        (b"\x28\xb5\x2f\xfd", "zstd data", "unpack it in bash with `unzstd` or `tar --zstd -xf`"),
        (b"\x7fELF", "a Linux program or library", PROGRAM),
        (b"\xca\xfe\xba\xbe", "a compiled Java class", PROGRAM),
        (b"ID3", "MP3 audio", PICTURED),
        (b"\xff\xfb", "MP3 audio", PICTURED),
        (b"OggS", "Ogg audio or video", PICTURED),
        (b"fLaC", "FLAC audio", PICTURED),
        (b"\x1a\x45\xdf\xa3", "a Matroska or WebM video", PICTURED),
        (b"\0asm", "a WebAssembly module", PROGRAM),
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
    match (content.get(..4), content.get(4..8), content.get(8..12)) {
        (Some(b"RIFF"), _, Some(b"WEBP")) => return ("a WebP image", IMAGE),
        (Some(b"RIFF"), _, Some(b"WAVE")) => return ("WAV audio", PICTURED),
        (Some(b"RIFF"), _, Some(b"AVI ")) => return ("an AVI video", PICTURED),
        (_, Some(b"ftyp"), Some(b"heic" | b"heix" | b"mif1")) => return ("a HEIC image", IMAGE),
        (_, Some(b"ftyp"), Some(b"avif" | b"avis")) => return ("an AVIF image", IMAGE),
        (_, Some(b"ftyp"), Some(b"M4A ")) => return ("MPEG-4 audio", PICTURED),
        (_, Some(b"ftyp"), _) => return ("an MPEG-4 or QuickTime video", PICTURED),
        _ => {}
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
