//! Calls that were cut off, and what can be found out about them.

use hart_kernel::{Effect, EffectKey, Reconciled, State, Tool, ToolContext};
use hart_sandbox::SandboxConfig;
use hart_tools::ReadMarks;
use hart_types::ToolCallId;
use serde_json::{Map, Value, json};

use crate::place::Place;

/// One call, as the kernel makes it.
struct Call<'a> {
    place: &'a Place,
    tool: std::sync::Arc<dyn Tool>,
    args: Map<String, Value>,
    state: State,
    id: ToolCallId,
    key: EffectKey,
}

impl<'a> Call<'a> {
    fn new(place: &'a Place, tool: &str, args: Value) -> Self {
        let (id, args) = (ToolCallId::from("call-1"), args.as_object().unwrap().clone());
        let key = EffectKey::new(&place.run.run_id, &id, tool, &args);
        Self { place, tool: place.tool(tool), args, state: State::default(), id, key }
    }

    fn cx(&self) -> ToolContext<'_> {
        ToolContext { run: &self.place.run, state: &self.state, call_id: &self.id, effect: Some(&self.key) }
    }

    async fn foresee(&self) -> Option<Value> {
        self.tool.foresee(&self.cx(), &self.args).await
    }

    async fn make(&self) -> String {
        self.tool.call(&self.cx(), self.args.clone()).await.unwrap().content.text()
    }

    async fn reconcile(&self, foreseen: Option<&Value>) -> Reconciled {
        self.tool.reconcile(&self.cx(), &self.args, foreseen).await
    }
}

#[test]
fn every_tool_says_what_a_second_call_would_do() {
    let mut effects = Place::new().effects();
    effects.sort_by(|one, other| one.0.cmp(&other.0));
    let pure: Vec<_> = effects.iter().filter(|(_, effect)| *effect == Effect::Pure).collect();
    let names: Vec<&str> = pure.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["glob", "grep", "ls", "present_files", "read_file"]);
    let once: Vec<_> = effects.iter().filter(|(_, effect)| *effect == Effect::Once).collect();
    let names: Vec<&str> = once.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bash", "delete", "str_replace", "write_file"]);
}

#[tokio::test]
async fn whether_a_file_was_changed_is_told_by_what_it_holds() {
    let place = Place::new();
    let path = "/mnt/user-data/workspace/a.txt";
    let cases = [
        ("write_file", json!({"path": path, "content": "new"}), "OK"),
        ("write_file", json!({"path": path, "content": "more", "append": true}), "OK"),
        // The result holds what was replaced: a second time would change it again.
        (
            "str_replace",
            json!({"path": path, "old_str": "a", "new_str": "aa", "replace_all": true}),
            "OK: replaced 2 occurrences",
        ),
    ];
    for (tool, args, answer) in cases {
        place.put("workspace/a.txt", "a b a");
        let call = Call::new(&place, tool, args);
        let foreseen = call.foresee().await;
        assert!(matches!(call.reconcile(foreseen.as_ref()).await, Reconciled::NotDone), "{tool}");
        assert_eq!(call.make().await, answer);
        let written = place.get("workspace/a.txt");
        let Reconciled::Done(output) = call.reconcile(foreseen.as_ref()).await else { panic!("{tool}") };
        assert_eq!(output.content.text(), answer);
        let mut state = State::default();
        state.apply(output.command.update).unwrap();
        let marks = state.get::<ReadMarks>().unwrap();
        assert_eq!(
            marks[path],
            hart_sandbox::content_mark(written.as_bytes()),
            "{tool}: it knows what is there"
        );
        assert_eq!(place.get("workspace/a.txt"), written, "looking changes nothing");
        place.put("workspace/a.txt", "something else");
        assert!(matches!(call.reconcile(foreseen.as_ref()).await, Reconciled::Unknown), "{tool}");
        assert!(matches!(call.reconcile(None).await, Reconciled::Unknown), "{tool}");
    }
}

#[tokio::test]
async fn a_new_file_and_a_deleted_one() {
    let place = Place::new();
    let path = "/mnt/user-data/outputs/new.txt";
    let write = Call::new(&place, "write_file", json!({"path": path, "content": "x"}));
    let foreseen = write.foresee().await;
    assert!(matches!(write.reconcile(foreseen.as_ref()).await, Reconciled::NotDone));
    write.make().await;
    assert!(matches!(write.reconcile(foreseen.as_ref()).await, Reconciled::Done(_)));

    let delete = Call::new(&place, "delete", json!({"path": path}));
    let foreseen = delete.foresee().await;
    assert!(matches!(delete.reconcile(foreseen.as_ref()).await, Reconciled::NotDone));
    let answer = delete.make().await;
    let Reconciled::Done(output) = delete.reconcile(foreseen.as_ref()).await else { panic!("it is gone") };
    assert_eq!(output.content.text(), answer);
    // One that was never there is refused again.
    let foreseen = delete.foresee().await;
    assert!(matches!(delete.reconcile(foreseen.as_ref()).await, Reconciled::NotDone));
}

#[tokio::test]
async fn a_command_that_finished_is_found_and_one_that_was_cut_off_is_not() {
    let Some(place) = Place::for_commands(SandboxConfig::default()) else { return };
    let command = "echo out; echo err >&2; ls -a /mnt/user-data/.. 2>/dev/null; find / -name 'receipts*' 2>/dev/null; exit 3";
    let call = Call::new(&place, "bash", json!({"command": command}));
    assert!(matches!(call.reconcile(None).await, Reconciled::Unknown), "it has not run");
    let answer = call.make().await;
    assert!(answer.contains("Exit Code: 3"), "{answer}");
    assert!(!answer.contains("receipts"), "no command sees where receipts are: {answer}");
    let Reconciled::Done(output) = call.reconcile(None).await else { panic!("it has run") };
    assert_eq!(output.content.text(), answer);
    assert_eq!(output.artifact.unwrap()["ended"], "exit code 3");
    let other = Call::new(&place, "bash", json!({"command": "true"}));
    assert!(matches!(other.reconcile(None).await, Reconciled::Unknown), "another command is another key");
    call.tool.settled(&call.cx()).await;
    assert!(matches!(call.reconcile(None).await, Reconciled::Unknown), "it is in the journal by then");
}
