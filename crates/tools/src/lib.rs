//! The built-in actions a model may take.
//!
//! Invariant: a tool reaches files and processes only through the sandbox of the thread that called it, and whatever
//! goes wrong comes back as words the model can act on.

mod ask_clarification;
mod background;
mod bash;
mod command_env;
mod cut;
mod fs;
mod human_input;
mod lenient;
mod outline;
mod output_budget;
mod path_access;
mod present_files;
mod read_marks;
mod sandboxed;
mod skills;
mod uploads;
mod view_image;
mod write_todos;

use std::sync::Arc;

use hart_kernel::{Tool, Typed};
use hart_knowledge::skills::{Catalogue, Evolution};
use hart_sandbox::{SandboxConfig, SandboxProvider};

pub use command_env::{CommandEnv, without_secrets};
pub use human_input::HumanInputResponse;
pub use outline::outline;
pub use output_budget::{ToolOutputConfig, line_preview, long_message_path};
pub use path_access::{PathAccess, path_access};
pub use present_files::Artifacts;
pub use read_marks::{FileAccess, ReadMarks, changed_since, file_access, never_read};
pub use uploads::{UploadedFile, UploadedFiles, in_bytes};
pub use view_image::{ViewedImage, ViewedImages, viewed};
pub use write_todos::{Todo, TodoStatus, Todos};

use sandboxed::Sandboxed;

/// The tools that work on a thread's files and run its commands.
///
/// Nothing is acquired yet: each call asks `provider` for the sandbox of the thread it runs in. An agent that offers
/// them declares the state key [`Artifacts`].
pub fn sandbox_tools(provider: Arc<dyn SandboxProvider>, config: &SandboxConfig) -> Vec<Arc<dyn Tool>> {
    let place = Arc::new(Sandboxed::new(provider, config));
    vec![
        Typed::shared(bash::Bash(Arc::clone(&place))),
        Typed::shared(background::BackgroundTool(Arc::clone(&place))),
        Typed::shared(fs::Ls(Arc::clone(&place))),
        Typed::shared(fs::Glob(Arc::clone(&place))),
        Typed::shared(fs::Grep(Arc::clone(&place))),
        Typed::shared(fs::ReadFile(Arc::clone(&place))),
        Typed::shared(fs::WriteFile(Arc::clone(&place))),
        Typed::shared(fs::StrReplace(Arc::clone(&place))),
        Typed::shared(fs::Delete(Arc::clone(&place))),
        Typed::shared(present_files::PresentFiles(place)),
    ]
}

/// The tool that ends a run with a question to the user.
pub fn ask_clarification() -> Arc<dyn Tool> {
    Typed::shared(ask_clarification::AskClarification)
}

/// The tool that shows images to the model. An agent that offers it declares the state key [`ViewedImages`] and puts the
/// images into the request.
pub fn view_image(provider: Arc<dyn SandboxProvider>) -> Arc<dyn Tool> {
    let place = Sandboxed::new(provider, &SandboxConfig::default());
    Typed::shared(view_image::ViewImage(Arc::new(place)))
}

/// The tool that lists what the user handed in.
pub fn list_uploaded_files(provider: Arc<dyn SandboxProvider>) -> Arc<dyn Tool> {
    let place = Sandboxed::new(provider, &SandboxConfig::default());
    Typed::shared(uploads::ListUploadedFiles(Arc::new(place)))
}

/// The tool that keeps the plan. An agent that offers it declares the state key [`Todos`].
pub fn write_todos() -> Arc<dyn Tool> {
    Typed::shared(write_todos::WriteTodos)
}

/// The tools that find skills among many.
pub fn skill_tools(catalogue: &Arc<Catalogue>) -> Vec<Arc<dyn Tool>> {
    vec![
        Typed::shared(skills::SkillSearch(Arc::clone(catalogue))),
        Typed::shared(skills::DescribeSkill(Arc::clone(catalogue))),
    ]
}

/// The tool that writes skills.
pub fn skill_manage(evolution: Arc<Evolution>) -> Arc<dyn Tool> {
    Typed::shared(skills::SkillManage(evolution))
}
