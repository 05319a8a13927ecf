//! Skills of subagents: what each is told of, what it reads, what it may use then.

use std::path::Path;
use std::sync::Arc;

use hart_agent::middleware::{Sandbox, Skills};
use hart_agent::{Features, SkillsConfig, Subagent, SuperAgent};
use hart_kernel::{RunContext, Update};
use hart_knowledge::skills::{Library, LibraryConfig};
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_types::Message;
use serde_json::json;

use crate::delegation::is_lead;
use crate::support::{MemoryLog, model};

fn put(home: &Path, name: &str, front: &str) {
    let folder = home.join("skills/custom").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: About {name}.\n{front}---\nThe method of {name}.\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

/// Lets the lead send `kind` with `prompt`; the subagent answers by what it was given.
async fn send(
    kind: Subagent,
    prompt: &'static str,
    child: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static,
) -> ModelServer {
    send_as("go", kind, prompt, child).await
}

/// The same, when the lead was asked this.
async fn send_as(
    question: &str,
    kind: Subagent,
    prompt: &'static str,
    child: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static,
) -> ModelServer {
    let name = kind.name().to_owned();
    let server = ModelServer::with(move |request| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => {
            let args = json!({"description": "d", "prompt": prompt, "subagent_type": name});
            Turn::new().tool_call("t", "task", args)
        }
        (true, _) => Turn::new().text("Done."),
        (false, _) => child(request),
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    put(home.path(), "charts", "allowed-tools: [Write]\n");
    put(home.path(), "poems", "");
    put(home.path(), "off", "");
    put(home.path(), "strict", "allowed-tools: [read_file, task]\ndisable-model-invocation: true\n");
    std::fs::write(home.path().join("extensions_config.json"), r#"{"skills": {"off": {"enabled": false}}}"#)
        .unwrap();
    let library = Library::new(LibraryConfig {
        skills: home.path().join("skills"),
        home: home.path().to_owned(),
        states: home.path().join("extensions_config.json"),
        own: true,
        scan: true,
        lock: true,
    });
    let catalogue = library.catalogue(None, "2100-01-01T00:00:00Z".parse().unwrap());
    let skills = Skills::new(catalogue, SkillsConfig::default());
    let places = LocalSandboxProvider::new(
        SandboxConfig::default(),
        home.path().to_owned(),
        Some(home.path().join("skills")),
    );
    let agent = SuperAgent::builder(model(&server, Dialect::OpenAi))
        .features(Features { skills: Some(skills), title: false.into(), ..Features::default() })
        .sandbox(Sandbox::new(Arc::new(places.unwrap()), SandboxConfig::default()))
        .delegates(true)
        .subagent(kind)
        .checkpointer(Arc::new(MemoryLog::default()))
        .build()
        .unwrap();
    let said = Update::none().messages(Message::human(question));
    agent.run(said, &RunContext::new("t1".into())).await.outcome.unwrap();
    server
}

fn told(server: &ModelServer) -> String {
    let requests = server.requests();
    requests.iter().find(|request| !is_lead(request)).unwrap().system()
}

#[tokio::test]
async fn a_subagent_is_told_of_exactly_its_skills() {
    let kind = || Subagent::builder("worker", "Works.").prompt("You work.");
    for (kind, charts, poems) in [
        (kind(), true, true),
        (kind().skills(["poems"]), false, true),
        (kind().skills(["off", "nowhere", "charts"]), true, false),
        (kind().skills::<&str>([]), false, false),
        (kind().tools(["ls"]), false, false),
        (kind().tools(["ls"]).skills(["charts"]), false, false),
    ] {
        let kind = kind.build().unwrap();
        let shown = format!("{kind:?}");
        let told = told(&send(kind, "p", |_| Turn::new().text("Report.")).await);
        assert_eq!(
            told.contains("- charts: About charts. (/mnt/skills/custom/charts/SKILL.md)"),
            charts,
            "{shown}"
        );
        assert_eq!(told.contains("- poems: About poems."), poems, "{shown}");
        assert_eq!(told.contains("<skills>"), charts || poems, "{shown}");
        assert!(!told.contains("- off:") && !told.contains("The method of"), "{told}");
    }
}

#[tokio::test]
async fn a_subagent_is_held_to_the_tools_of_what_it_reads() {
    let file = json!({"path": "/mnt/user-data/workspace/n.txt", "content": "n"});
    let read = json!({"description": "d", "path": "/mnt/skills/custom/charts/SKILL.md"});
    let child = move |request: &RecordedRequest| match request.tool_results().len() {
        0 => Turn::new().tool_call("r", "read_file", read.clone()),
        1 => Turn::new()
            .tool_call(
                "b",
                "bash",
                json!({"description": "d", "command": "touch /mnt/user-data/workspace/x"}),
            )
            .tool_call("w", "write_file", file.clone()),
        _ => Turn::new().text("Report."),
    };
    let kind = Subagent::builder("worker", "Works.").prompt("You work.").build().unwrap();
    let server = send(kind, "Draw", child).await;
    let requests: Vec<_> = server.requests().into_iter().filter(|request| !is_lead(request)).collect();
    assert!(requests[0].tool_names().contains(&"bash"));
    let mut left = requests[1].tool_names();
    left.sort_unstable();
    assert_eq!(left, ["read_file", "write_file"]);
    let last = requests.last().unwrap();
    assert!(last.tool_result("r").unwrap().content.contains("The method of charts."));
    let refused = last.tool_result("b").unwrap().content;
    assert!(refused.contains("does not allow `bash`"), "{refused}");
    assert!(!last.tool_result("w").unwrap().content.contains("Error"));
}

#[tokio::test]
async fn delegation_is_no_way_around_what_the_senders_skill_allows() {
    let kind = || Subagent::builder("worker", "Works.");
    // Whether or not it could read the skill itself.
    for kind in [kind(), kind().skills::<&str>([]), kind().tools(["bash", "write_file"])] {
        let kind = kind.build().unwrap();
        let command = json!({"description": "d", "command": "true"});
        let child = move |request: &RecordedRequest| match request.tool_results().len() {
            0 => Turn::new().tool_call("b", "bash", command.clone()),
            _ => Turn::new().text("Report."),
        };
        let server = send_as("/strict go", kind, "Run it", child).await;
        let children: Vec<_> = server.requests().into_iter().filter(|request| !is_lead(request)).collect();
        assert!(!children[0].tool_names().contains(&"bash"), "{:?}", children[0].tool_names());
        let refused = children[1].tool_result("b").unwrap().content;
        assert!(refused.contains("does not allow `bash`"), "{refused}");
    }
}
