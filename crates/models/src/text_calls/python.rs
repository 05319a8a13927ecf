//! Reads calls that are written as Python: `[f(a=1), g(b="x")]`, or one without the brackets.
//!
//! Invariant: only keyword arguments with literal values are understood; nothing is evaluated.

use serde_json::Map;

use super::offered::{Found, Offered, fits};
use crate::repair::{Closing, Reader};

/// The calls of `text`, which must hold nothing else. `strict` as in [`Offered::described`].
pub(super) fn calls(text: &str, offered: &Offered, strict: bool) -> Option<Vec<Found>> {
    let mut reader = Reader::new(text, Closing::Never);
    reader.skip();
    let listed = reader.eat("[");
    let mut found = Vec::new();
    loop {
        reader.skip();
        if listed && reader.eat("]") {
            break;
        }
        found.push(call(&mut reader, offered, strict)?);
        reader.skip();
        let more = reader.eat(",") || reader.eat(";");
        if !listed && !more {
            break;
        }
        if listed && !more && reader.peek() != Some(b']') {
            return None;
        }
    }
    reader.skip();
    (reader.rest().is_empty() && !found.is_empty()).then_some(found)
}

fn call(reader: &mut Reader<'_>, offered: &Offered, strict: bool) -> Option<Found> {
    let name = word(reader)?;
    // Llama calls its built-in tools as `name.call(…)`.
    let spec = offered.find(name).or_else(|| offered.find(name.strip_suffix(".call")?))?;
    reader.skip();
    if !reader.eat("(") {
        return None;
    }
    let mut args = Map::new();
    loop {
        reader.skip();
        if reader.eat(")") {
            break;
        }
        let key = word(reader)?.to_owned();
        reader.skip();
        if !reader.eat("=") {
            return None;
        }
        args.insert(key, reader.value().ok()??);
        reader.skip();
        if !reader.eat(",") && reader.peek() != Some(b')') {
            return None;
        }
    }
    let fits = !strict || fits(spec, &args);
    fits.then(|| Found::Call { name: spec.name.clone(), args, repaired: false })
}

/// An identifier, with dots and dashes as tool names have them.
fn word<'a>(reader: &mut Reader<'a>) -> Option<&'a str> {
    let rest = reader.rest();
    let length = rest
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | ':' | '/')))
        .unwrap_or(rest.len());
    let word = rest.get(..length).filter(|word| !word.is_empty())?;
    reader.eat(word).then_some(word)
}
