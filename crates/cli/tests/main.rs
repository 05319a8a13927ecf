//! The binary, run as a user runs it, against a scripted model that speaks real HTTP.

#[cfg(test)]
mod suite {
    mod agents;
    mod approval;
    mod bench;
    mod chaos;
    mod chat;
    mod config;
    mod damage;
    mod delegation;
    mod errors;
    mod frontend;
    mod info;
    mod killed;
    mod models;
    mod reconnect;
    mod recorded;
    mod remembered;
    mod replay;
    mod resilience;
    mod run;
    mod serve;
    mod skills;
    mod stuck;
    mod terminal;
}
