//! Who may depend on whom: the table of layers, and the check of the workspace against it.
//!
//! Invariant: this table is the plan; it changes with an ADR, and the manifests follow it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

/// What each crate may name in `[dependencies]` or `[build-dependencies]` among its siblings. Tests are free.
const ALLOWED: [(&str, &[&str]); 15] = [
    ("types", &[]),
    ("guard", &["types"]),
    ("kernel", &["types"]),
    ("sandbox", &["types"]),
    ("client", &["types"]),
    ("models", &["types", "kernel"]),
    ("knowledge", &["types", "kernel"]),
    ("runtime", &["types", "kernel"]),
    ("tools", &["types", "kernel", "sandbox", "knowledge"]),
    ("store", &["types", "kernel", "runtime"]),
    ("gateway", &["types", "kernel", "runtime"]),
    ("agent", &["types", "guard", "kernel", "sandbox", "knowledge", "tools"]),
    (
        "app",
        &[
            "types",
            "guard",
            "kernel",
            "models",
            "sandbox",
            "client",
            "knowledge",
            "runtime",
            "tools",
            "store",
            "agent",
            "gateway",
        ],
    ),
    ("cli", &["app", "client", "types"]),
    ("testkit", &[]),
];

/// Measures everything, so it may use anything.
const FREE: [&str; 1] = ["bench"];

/// What a crate must not pull in, however indirectly.
const FORBIDDEN: [(&str, &[&str]); 8] = [
    ("guard", &["tokio", "hyper", "reqwest", "axum", "rusqlite"]),
    ("types", &["tokio", "hyper", "reqwest", "axum", "rusqlite"]),
    ("kernel", &["hyper", "reqwest", "axum", "rusqlite"]),
    ("sandbox", &["hyper", "reqwest", "axum", "rusqlite"]),
    ("knowledge", &["hyper", "reqwest", "axum", "rusqlite"]),
    ("models", &["axum", "rusqlite"]),
    ("tools", &["axum", "rusqlite"]),
    ("agent", &["axum", "rusqlite"]),
];

const PREFIX: &str = "hart-";
const REMEDY: &str = "move the code to the crate that may do this, or change the plan first: \
                      write an ADR in docs/adr, then edit the table in crates/testkit/src/layering.rs";

/// Every wrong arrow of the workspace at `root`, one sentence each; none means the layers hold.
///
/// # Panics
/// When cargo cannot describe the workspace.
#[must_use]
pub fn violations(root: &Path) -> Vec<String> {
    let mut found = wrong_arrows(&metadata(root, &["--no-deps"]));
    // Only this platform's graph: offline, the crates of other platforms need not be at hand.
    let host = host_triple(root);
    found.extend(forbidden_reach(&metadata(root, &["--filter-platform", &host])));
    found
}

/// The direct arrows among hart's crates that the table does not allow, in the output of `cargo metadata`.
#[must_use]
pub fn wrong_arrows(metadata: &Metadata) -> Vec<String> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        let Some(name) = package.name.strip_prefix(PREFIX).filter(|name| !FREE.contains(name)) else {
            continue;
        };
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            found.push(format!(
                "{PREFIX}{name} is not in the table of layers: add it to the table ({REMEDY})"
            ));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.kind.as_deref() != Some("dev")) {
            let Some(target) = dependency.name.strip_prefix(PREFIX) else { continue };
            if !allowed.contains(&target) {
                let may = if allowed.is_empty() { "no hart crate".to_owned() } else { allowed.join(", ") };
                found.push(format!(
                    "wrong arrow {PREFIX}{name} -> {PREFIX}{target}: {name} may depend on {may}; {REMEDY}"
                ));
            }
        }
    }
    found
}

/// The forbidden crates that a hart crate reaches, with the way it reaches them, in `cargo metadata` with its graph.
#[must_use]
pub fn forbidden_reach(metadata: &Metadata) -> Vec<String> {
    let names: BTreeMap<&str, &str> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package.name.as_str())).collect();
    let nodes = metadata.resolve.as_ref().map_or(&[][..], |resolve| resolve.nodes.as_slice());
    let edges: BTreeMap<&str, &Node> = nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut found = Vec::new();
    for package in &metadata.packages {
        let rule =
            package.name.strip_prefix(PREFIX).and_then(|n| FORBIDDEN.iter().find(|(known, _)| *known == n));
        let Some((name, forbidden)) = rule else { continue };
        let mut seen = BTreeSet::from([package.id.as_str()]);
        let mut paths = vec![vec![package.id.as_str()]];
        while let Some(path) = paths.pop() {
            let Some(node) = path.last().and_then(|last| edges.get(last)) else { continue };
            for edge in node.deps.iter().filter(|edge| edge.is_shipped()) {
                if !seen.insert(&edge.pkg) {
                    continue;
                }
                let mut longer = path.clone();
                longer.push(&edge.pkg);
                let reached = names.get(edge.pkg.as_str()).copied().unwrap_or_default();
                if forbidden.contains(&reached) {
                    let way: Vec<_> = longer.iter().filter_map(|id| names.get(id).copied()).collect();
                    found.push(format!(
                        "{PREFIX}{name} must not pull in {reached}: {}; {REMEDY}",
                        way.join(" -> ")
                    ));
                }
                paths.push(longer);
            }
        }
    }
    found
}

/// The part of `cargo metadata` that the check reads.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    packages: Vec<Package>,
    resolve: Option<Resolve>,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// Absent for what ships; otherwise `build` or `dev`.
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

impl Edge {
    fn is_shipped(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"))
    }
}

fn metadata(root: &Path, args: &[&str]) -> Metadata {
    let fixed = ["metadata", "--format-version", "1", "--offline"];
    let json = output(root, &crate::binary::cargo(), &[&fixed, args].concat());
    serde_json::from_slice(&json).expect("cargo metadata is JSON")
}

fn host_triple(root: &Path) -> String {
    let text = output(root, "rustc".as_ref(), &["-vV"]);
    let text = String::from_utf8_lossy(&text);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc tells its host").to_owned()
}

#[expect(
    clippy::disallowed_methods,
    reason = "asks the toolchain about the workspace; no thread is involved"
)]
fn output(root: &Path, program: &Path, args: &[&str]) -> Vec<u8> {
    let run = Command::new(program).args(args).current_dir(root).output();
    let run = run.unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{} {} failed: {stderr}", program.display(), args.join(" "));
    run.stdout
}
