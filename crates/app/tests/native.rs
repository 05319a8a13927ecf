//! The routes beside LangGraph's, over HTTP: a real server, real files, a scripted model.

mod agents;
mod artifacts;
mod connections;
mod conversation;
mod goals;
mod secrets;
mod skills;
mod uploads;
mod usage;
mod world;
