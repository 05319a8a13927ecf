//! `view_image`: shows image files to a model that can see.
//!
//! Invariant: an image's bytes enter the thread's log once, whatever its path and however often it is looked at; the
//! tool's answer only names them.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{
    Effect, ReduceError, Scope, StateKey, ToolContext, ToolError, ToolOutput, TypedTool, Update, async_trait,
};
use hart_sandbox::{EntryKind, Sandbox};
use hart_types::{Message, ToolStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::lenient::{List, Purpose};
use crate::sandboxed::{Sandboxed, explain, failed};
use crate::uploads::in_bytes;

/// The images looked at in a thread, by a digest of their content.
#[derive(Clone, Copy, Debug)]
pub struct ViewedImages;

impl StateKey for ViewedImages {
    type Value = BTreeMap<String, Arc<ViewedImage>>;
    type Update = BTreeMap<String, Arc<ViewedImage>>;
    const NAME: &'static str = "viewed_images";
    /// Megabytes that no client asked for.
    const SCOPE: Scope = Scope::Private;

    fn reduce(current: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        let mut all = current.unwrap_or_default();
        all.extend(update);
        Ok(all)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewedImage {
    pub mime_type: String,
    pub base64: String,
}

/// The digests of the images that a result of `view_image` names, in order.
pub fn viewed(message: &Message) -> impl Iterator<Item = &str> {
    let result = message.as_tool_result().filter(|result| result.status == ToolStatus::Success);
    let artifact = result.and_then(|result| result.artifact.as_ref());
    let images = artifact.and_then(|artifact| artifact.get(ARTIFACT)).and_then(Value::as_array);
    images.into_iter().flatten().filter_map(|image| image.get("digest").and_then(Value::as_str))
}

const ARTIFACT: &str = "viewed_images";

pub(crate) struct ViewImage(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ViewImageArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// The absolute paths of the images: PNG, JPEG, GIF or WebP, at most 20 MB each.
    #[serde(alias = "path", alias = "image_path", alias = "file_path")]
    paths: List<String>,
}

const MAX_BYTES: u64 = 20 * 1024 * 1024;
const MAX_AT_ONCE: usize = 10;

#[async_trait]
impl TypedTool for ViewImage {
    const NAME: &'static str = "view_image";
    const DESCRIPTION: &'static str = "\
Look at image files: uploads, screenshots, charts you made.

Use it whenever what an image shows matters; do not guess from its name. Images that belong together go \
into one call.";
    const EFFECT: Effect = Effect::Pure;
    type Args = ViewImageArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: ViewImageArgs) -> Result<ToolOutput, ToolError> {
        let paths = args.paths.0;
        match paths.len() {
            0 => return Err(failed("paths is empty; name at least one image")),
            count if count > MAX_AT_ONCE => {
                return Err(failed(format!("{count} images at once; look at {MAX_AT_ONCE} or fewer")));
            }
            _ => {}
        }
        let sandbox = self.0.acquire(cx).await?;
        let stored = cx.run.scratch.get_or_default::<Stored>();
        let (mut new, mut named, mut lines) = (BTreeMap::new(), Vec::new(), Vec::new());
        for text in &paths {
            let image = read(sandbox.as_ref(), text).await?;
            lines.push(format!("{} ({}, {})", image.path, image.mime_type, in_bytes(image.size)));
            named.push(json!({"path": image.path, "mime_type": image.mime_type, "digest": image.digest}));
            let known = cx.state.get::<ViewedImages>().is_some_and(|all| all.contains_key(&image.digest));
            if !known && stored.add(&image.digest) {
                let base64 = base64(&image.bytes);
                let viewed = ViewedImage { mime_type: image.mime_type.to_owned(), base64 };
                new.insert(image.digest, Arc::new(viewed));
            }
        }
        let update = if new.is_empty() { Update::none() } else { Update::none().set::<ViewedImages>(new) };
        Ok(ToolOutput {
            content: format!("Shown: {}", lines.join("; ")).into(),
            artifact: Some(json!({ ARTIFACT: named })),
            command: update.into(),
        })
    }
}

/// What this run has put into the state; the state learns of it after the batch.
#[derive(Default)]
struct Stored(Mutex<HashSet<String>>);

impl Stored {
    fn add(&self, digest: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest.to_owned())
    }
}

struct Image {
    path: String,
    mime_type: &'static str,
    size: u64,
    digest: String,
    bytes: Vec<u8>,
}

async fn read(sandbox: &dyn Sandbox, text: &str) -> Result<Image, ToolError> {
    let path = sandbox.path(text).map_err(explain)?;
    let stat = sandbox.stat(&path).await.map_err(explain)?;
    if stat.kind == EntryKind::File && stat.size > MAX_BYTES {
        let size = in_bytes(stat.size);
        return Err(failed(format!(
            "`{path}` has {size}, the limit is 20 MB; make a smaller copy in bash, for example with Python and Pillow"
        )));
    }
    let before = sandbox.mark(&path).await.map_err(explain)?;
    let bytes = sandbox.read(&path).await.map_err(explain)?;
    let Some(mime_type) = mime_type(&bytes) else {
        return Err(failed(format!(
            "`{path}` is not a PNG, JPEG, GIF or WebP image, whatever its name says; convert it in bash first, for \
             example with Python and Pillow, or read it with read_file if it is text"
        )));
    };
    let digest = sandbox.mark(&path).await.map_err(explain)?;
    // The digest stands for the bytes from now on.
    if digest != before {
        return Err(failed(format!(
            "`{path}` changed while it was read; look at it again when it is finished"
        )));
    }
    Ok(Image { path: path.as_str().to_owned(), mime_type, size: bytes.len() as u64, digest, bytes })
}

/// By content: names lie. The four kinds that every provider takes.
fn mime_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |group: u32, shift: u32| {
        let at = usize::try_from((group >> shift) & 63).unwrap_or_default();
        char::from(ALPHABET.get(at).copied().unwrap_or(b'A'))
    };
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        out.push(letter(group, 18));
        out.push(letter(group, 12));
        out.push(if chunk.len() > 1 { letter(group, 6) } else { '=' });
        out.push(if chunk.len() > 2 { letter(group, 0) } else { '=' });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("\u{ff}\u{fe}", "w7/Dvg=="),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn images_are_known_by_their_content() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", None),
            (b"<svg>", None),
            (b"", None),
        ] {
            assert_eq!(mime_type(bytes), kind);
        }
    }
}
