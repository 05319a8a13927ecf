//! Admits, executes, records and resumes runs, whatever agent they run.
//!
//! Invariant: a run and its readers never share a task; what connects them is the log.

mod checkpoints;
mod doorbell;
mod event;
mod failure;
mod follow;
mod follow_thread;
mod forks;
mod frame;
mod journal;
pub mod port;
mod reasoning;
mod recall;
mod record;
pub mod recording;
mod request;
mod run_frames;
mod runtime;
mod schedule;
mod sink;
mod tape;
mod tasks;
mod telemetry;
mod to_the_end;
mod transcript;
mod values;
mod workspaces;

pub use event::{AskedModel, LogEvent, Logged, StepRef, Task};
pub use follow::{After, Follower, reaches};
pub use follow_thread::{ThreadEvent, ThreadFollower};
pub use forks::{Fork, Way};
pub use frame::{Channel, Envelope, EventRenderer, Frame, Renderer, source};
pub use recall::Recall;
pub use record::{Failure, Lifetime, ModelTotals, Run, Thread, Totals};
pub use request::{AgentFactory, AgentInfo, AgentRequest, FactoryError, Input, StartRun, recursion_limit};
pub use run_frames::{RunFrames, UnsaidEnd, frames_of};
pub use runtime::{
    ATTEMPT, Adopt, AssistantError, CancelError, CronError, CronRequestError, CronRequests, Parts, Postman,
    Retention, Runtime, Settings, StartError, StateError, ThreadState, Undelivered, assistant_id,
};
pub use schedule::{Schedule, ScheduleError};
pub use tape::Entry;
pub use tasks::NextTask;
pub use telemetry::{Attribute, BUCKETS, Metrics, NotExported, Observed, Span, SpanKind, TraceExporter};
pub use transcript::Said;
pub use values::Spelling;
pub use workspaces::{NoWorkspaces, Workspace, WorkspaceError, Workspaces};
