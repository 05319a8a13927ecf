//! `write_todos`: the plan of a task, kept where the user sees it.
//!
//! Invariant: a call replaces the whole list, so what the model wrote last is what stands.

use hart_kernel::{
    Effect, ReduceError, Scope, StateKey, ToolContext, ToolError, ToolOutput, TypedTool, Update, async_trait,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lenient::List;
use crate::sandboxed::failed;

/// The plan of a thread: its steps in order.
#[derive(Clone, Copy, Debug)]
pub struct Todos;

impl StateKey for Todos {
    type Value = Vec<Todo>;
    type Update = Vec<Todo>;
    const NAME: &'static str = "todos";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(_: Option<Vec<Todo>>, update: Vec<Todo>) -> Result<Vec<Todo>, ReduceError> {
        Ok(update)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// What is to be done, in one line.
    pub content: String,
    pub status: TodoStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

impl TodoStatus {
    /// As the model writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

pub(crate) struct WriteTodos;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WriteTodosArgs {
    /// The whole list, in order; it replaces the one before.
    todos: List<Todo>,
}

/// A plan that nobody can survey is none.
const MAX_TODOS: usize = 100;

#[async_trait]
impl TypedTool for WriteTodos {
    const NAME: &'static str = "write_todos";
    const DESCRIPTION: &'static str = "\
Write down or change the plan of a task. The user sees it.

Use it for work of three steps or more, and when the user gives a list of things to do; not for a question \
or a small change. Every call replaces the whole list. Set a step to in_progress when you begin it and to \
completed once it is done and checked; leave it in_progress if it failed, and add a step for what blocks it. \
Call it at most once in an answer.";
    const EFFECT: Effect = Effect::Pure;
    type Args = WriteTodosArgs;

    async fn run(&self, _: &ToolContext<'_>, args: WriteTodosArgs) -> Result<ToolOutput, ToolError> {
        let todos = args.todos.0;
        if todos.len() > MAX_TODOS {
            let count = todos.len();
            return Err(failed(format!(
                "the list has {count} steps, the limit is {MAX_TODOS}; sum up what belongs together"
            )));
        }
        if todos.iter().any(|todo| todo.content.trim().is_empty()) {
            return Err(failed("a step has no content; say in one line what is to be done"));
        }
        let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
        let text = match todos.len() {
            0 => "The list is empty now.".to_owned(),
            all => format!("The list is updated: {done} of {all} completed."),
        };
        Ok(ToolOutput {
            content: text.into(),
            command: Update::none().set::<Todos>(todos).into(),
            ..ToolOutput::default()
        })
    }
}
