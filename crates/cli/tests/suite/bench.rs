//! Where the tests happen: a folder of its own and a model for each.

use std::fs;
use std::path::Path;

use hart_testkit::binary::{Finished, Hart};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use serde_json::Value;

pub(super) const ALL: [Dialect; 5] =
    [Dialect::OpenAi, Dialect::Anthropic, Dialect::Responses, Dialect::Gemini, Dialect::Ollama];

/// A configuration that asks again without pauses.
pub(super) const QUICK: &str = "llm_call: {retry_base_delay_ms: 1, retry_cap_delay_ms: 1}\n";

pub(super) struct Bench {
    pub(super) dir: tempfile::TempDir,
    pub(super) server: ModelServer,
    dialect: Dialect,
}

impl Bench {
    pub(super) fn new(dialect: Dialect) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bench = Self { dir, server: ModelServer::start_blocking(), dialect };
        if dialect == Dialect::Responses {
            // The environment has no word for it: at an address of the user's own, chat completions are the rule.
            let model = "name: m, use: openai, model: gpt-5.6, api_key: sk-test, use_responses_api: true";
            let base = bench.server.openai_base();
            bench.write("config.yaml", &format!("models:\n  - {{{model}, base_url: '{base}'}}\n"));
        }
        bench
    }

    /// A model that computes its answers.
    pub(super) fn answering(
        dialect: Dialect,
        respond: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, server: ModelServer::with_blocking(respond), dialect }
    }

    pub(super) fn with(turns: impl IntoIterator<Item = Turn>) -> Self {
        let bench = Self::new(Dialect::OpenAi);
        bench.server.push_all(turns);
        bench
    }

    /// `hart` with the server's address and a key in its environment.
    pub(super) fn hart(&self) -> Hart {
        let hart = offline(self.dir.path());
        match self.dialect {
            Dialect::OpenAi => {
                hart.env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", self.server.openai_base())
            }
            Dialect::Anthropic => hart
                .env("ANTHROPIC_API_KEY", "sk-test")
                .env("ANTHROPIC_BASE_URL", self.server.anthropic_base()),
            Dialect::Responses => hart,
            Dialect::Gemini => {
                hart.env("GEMINI_API_KEY", "sk-test").env("GOOGLE_GEMINI_BASE_URL", self.server.gemini_base())
            }
            Dialect::Ollama => {
                let base = self.server.ollama_base();
                let entry =
                    format!("models:\n  - {{name: m, use: ollama, model: mock, base_url: '{base}'}}\n");
                self.write("config.yaml", &entry);
                hart
            }
        }
    }

    pub(super) fn run(&self, task: &str) -> Finished {
        self.hart().args(["run", task]).run()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join(name), text).unwrap();
    }
}

/// `hart` without any model.
pub(super) fn offline(dir: &Path) -> Hart {
    Hart::with_bin(env!("CARGO_BIN_EXE_hart"), dir).env("HART_NO_PROBE", "1").env("HART_LOG", "warn")
}

/// Every line of stdout as JSON.
pub(super) fn frames(finished: &Finished) -> Vec<Value> {
    finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The id in the last line that says how to go on.
pub(super) fn thread_of(finished: &Finished) -> String {
    let (_, rest) = finished.stderr.rsplit_once("--thread ").expect("a thread to go on with");
    rest.split_whitespace().next().unwrap().to_owned()
}
