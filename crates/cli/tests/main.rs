//! The binary, run as a user runs it, against a scripted model that speaks real HTTP.

#[cfg(test)]
mod suite {
    mod approval;
    mod bench;
    mod chat;
    mod config;
    mod delegation;
    mod errors;
    mod info;
    mod models;
    mod reconnect;
    mod remembered;
    mod replay;
    mod resilience;
    mod run;
    mod serve;
    mod terminal;
}
