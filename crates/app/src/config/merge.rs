//! One layer of configuration over another.
//!
//! Invariant: what the upper layer does not mention stays as it was, with its mark.

use super::node::{Data, Entry, Node};

/// Maps merge, scalars and lists replace, `null` clears; the entries of `models` merge by their `name`.
pub(crate) fn merge(base: Node, over: Node) -> Node {
    merge_at(base, over, "")
}

fn merge_at(base: Node, over: Node, key: &str) -> Node {
    match (base.data, over.data) {
        (Data::Map(mut entries), Data::Map(upper)) => {
            for entry in upper {
                lay(&mut entries, entry);
            }
            Node { data: Data::Map(entries), mark: base.mark }
        }
        (Data::List(mut items), Data::List(upper)) if key == "models" => {
            for item in upper {
                lay_named(&mut items, item);
            }
            Node { data: Data::List(items), mark: base.mark }
        }
        (_, data) => without_nulls(Node { data, mark: over.mark }),
    }
}

fn lay(entries: &mut Vec<Entry>, entry: Entry) {
    if entry.value.is_null() {
        entries.retain(|existing| existing.key != entry.key);
        return;
    }
    match entries.iter_mut().find(|existing| existing.key == entry.key) {
        Some(existing) => {
            let base = std::mem::replace(&mut existing.value, Node::empty_map());
            existing.value = merge_at(base, entry.value, &entry.key);
            existing.key_mark = entry.key_mark;
        }
        None => entries.push(Entry { value: without_nulls(entry.value), ..entry }),
    }
}

fn lay_named(items: &mut Vec<Node>, item: Node) {
    let name = item.get("name").and_then(Node::as_str);
    let same = items
        .iter()
        .position(|existing| name.is_some() && existing.get("name").and_then(Node::as_str) == name);
    match same.and_then(|index| items.get_mut(index)) {
        Some(existing) => {
            let base = std::mem::replace(existing, Node::empty_map());
            *existing = merge_at(base, item, "");
        }
        None => items.push(without_nulls(item)),
    }
}

/// A `null` that has nothing below it to clear has done its work.
fn without_nulls(mut node: Node) -> Node {
    if let Data::Map(entries) = &mut node.data {
        entries.retain(|entry| !entry.value.is_null());
        for entry in entries {
            let value = std::mem::replace(&mut entry.value, Node::empty_map());
            entry.value = without_nulls(value);
        }
    }
    node
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::node::Mark;

    #[test]
    fn the_table() {
        for (base, over, merged) in [
            (json!({}), json!({}), json!({})),
            (json!({"a": 1}), json!({}), json!({"a": 1})),
            (json!({"a": 1}), json!({"a": 2, "b": 3}), json!({"a": 2, "b": 3})),
            (json!({"a": {"x": 1, "y": 2}}), json!({"a": {"y": 3}}), json!({"a": {"x": 1, "y": 3}})),
            (json!({"a": {"x": 1}}), json!({"a": null}), json!({})),
            (json!({"a": {"x": 1, "y": 2}}), json!({"a": {"x": null}}), json!({"a": {"y": 2}})),
            (json!({}), json!({"a": {"x": null, "y": 1}}), json!({"a": {"y": 1}})),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (json!({"a": {"x": 1}}), json!({"a": 5}), json!({"a": 5})),
            (json!({"a": 5}), json!({"a": {"x": 1, "y": null}}), json!({"a": {"x": 1}})),
            (json!({"a": null}), json!({"a": {"x": 1}}), json!({"a": {"x": 1}})),
            (
                json!({"models": [{"name": "a", "model": "m", "t": 1}, {"name": "b"}]}),
                json!({"models": [{"name": "b", "t": 2}, {"name": "a", "t": null}, {"name": "c"}]}),
                json!({"models": [{"name": "a", "model": "m"}, {"name": "b", "t": 2}, {"name": "c"}]}),
            ),
            (json!({"models": [{"name": "a"}]}), json!({"models": null}), json!({})),
            (
                json!({"models": [{"x": 1}]}),
                json!({"models": [{"x": 2}]}),
                json!({"models": [{"x": 1}, {"x": 2}]}),
            ),
            // Only the section of that name merges by name.
            (
                json!({"tools": [{"name": "a", "x": 1}]}),
                json!({"tools": [{"name": "a"}]}),
                json!({"tools": [{"name": "a"}]}),
            ),
        ] {
            let result = merge(Node::from_json(base.clone()), Node::from_json(over.clone())).to_json();
            assert_eq!(result, merged, "{over} over {base}");
        }
    }

    #[test]
    fn what_is_not_mentioned_keeps_its_mark() {
        let base =
            crate::config::raw::parse("sandbox:\n  use: local\n  allow_host_bash: false\n", "f").unwrap();
        let merged = merge(base, Node::from_json(json!({"sandbox": {"allow_host_bash": true}})));
        let sandbox = merged.get("sandbox").unwrap();
        assert_eq!(sandbox.get("use").unwrap().mark, Mark::at(2, 8));
        assert_eq!(sandbox.get("allow_host_bash").unwrap().mark, Mark::default());
    }
}
