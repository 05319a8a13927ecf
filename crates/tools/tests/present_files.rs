//! `present_files` and the state key it writes.

use hart_kernel::{Schema, State, Update};
use hart_tools::Artifacts;
use serde_json::json;

use crate::place::Place;

#[tokio::test]
async fn presented_files_become_artifacts() {
    let place = Place::new();
    place.put("outputs/report.md", "# Report");
    place.put("outputs/charts/one.png", "");
    let output = place
        .call(
            "present_files",
            json!({"filepaths": ["/mnt/user-data/outputs/./report.md",
                "/mnt/user-data/outputs/charts/one.png"]}),
        )
        .await
        .unwrap();
    assert_eq!(output.content.text(), "Successfully presented files");
    assert_eq!(output.command.goto, None);
    assert_eq!(
        json!(output.command.update.to_writes()),
        json!([{"key": "artifacts", "value": [
            "/mnt/user-data/outputs/report.md", "/mnt/user-data/outputs/charts/one.png"]}])
    );
}

#[tokio::test]
async fn a_list_in_quotes_is_understood() {
    let place = Place::new();
    place.put("outputs/a", "");
    for filepaths in [json!("/mnt/user-data/outputs/a"), json!("[\"/mnt/user-data/outputs/a\"]")] {
        let answer = place.ok("present_files", json!({"filepaths": filepaths})).await;
        assert_eq!(answer, "Successfully presented files");
    }
}

#[tokio::test]
async fn what_cannot_be_presented_is_said_and_nothing_is() {
    let place = Place::new();
    place.put("outputs/good.md", "");
    place.put("outputs/dir/inner.md", "");
    place.put("workspace/draft.md", "");
    let refused = async |path: &str| {
        place.fails("present_files", json!({"filepaths": ["/mnt/user-data/outputs/good.md", path]})).await
    };
    assert_eq!(
        refused("/mnt/user-data/workspace/draft.md").await,
        "no file was presented: `/mnt/user-data/workspace/draft.md` is not under /mnt/user-data/outputs; \
         copy it to /mnt/user-data/outputs first"
    );
    assert_eq!(
        refused("/mnt/skills/public/x/SKILL.md").await,
        "no file was presented: `/mnt/skills/public/x/SKILL.md` is not under /mnt/user-data/outputs and \
         cannot be downloaded; copy it to /mnt/user-data/outputs first"
    );
    assert_eq!(
        refused("/mnt/user-data/outputs/missing.md").await,
        "no file was presented: no such file or directory: `/mnt/user-data/outputs/missing.md`; list its \
         parent directory to see what is there"
    );
    assert_eq!(
        refused("/mnt/user-data/outputs/dir").await,
        "no file was presented: `/mnt/user-data/outputs/dir` is a directory; name the files in it, or pack \
         it into an archive"
    );
    let escape = refused("/mnt/user-data/outputs/../workspace/draft.md").await;
    assert!(escape.contains("`/mnt/user-data/workspace/draft.md` is not under"), "{escape}");
    let outside = refused("/etc/passwd").await;
    assert!(outside.starts_with("no file was presented: outside the sandbox: `/etc/passwd`; "), "{outside}");
    assert_eq!(
        place.fails("present_files", json!({"filepaths": []})).await,
        "filepaths is empty; name at least one file under /mnt/user-data/outputs"
    );
}

#[tokio::test]
async fn a_link_out_of_the_sandbox_is_not_presented() {
    let place = Place::new();
    place.put("outputs/good.md", "");
    std::os::unix::fs::symlink("/etc/passwd", place.host("outputs/link")).unwrap();
    let error = place.fails("present_files", json!({"filepaths": ["/mnt/user-data/outputs/link"]})).await;
    assert!(error.starts_with("no file was presented: "), "{error}");
}

#[test]
fn artifacts_keep_their_order_and_occur_once() {
    let mut schema = Schema::default();
    schema.declare::<Artifacts>().unwrap();
    let mut state = State::default();
    for paths in [vec!["b", "a", "b"], vec!["c", "a"]] {
        let paths = paths.into_iter().map(str::to_owned).collect();
        state.apply(Update::none().set::<Artifacts>(paths)).unwrap();
    }
    assert_eq!(state.get::<Artifacts>().unwrap(), &["b", "a", "c"]);
    assert_eq!(json!(schema.values(&state)), json!({"artifacts": ["b", "a", "c"]}));
}
