//! Shows an address in the user's browser.
//!
//! Invariant: that there is none is no failure; the address is said instead.

use std::process::{Command, Stdio};

use hart_app::Env;

use crate::terminal::Terminal;

/// Returns at once; the browser is its own master.
pub(crate) fn open(url: &str, terminal: &Terminal) {
    let env = Env::from_process();
    let Some(program) = program(&env) else {
        terminal.note(&format!("there is no browser here; open {url} in one"));
        return;
    };
    if let Err(error) = start(program, url) {
        terminal.note(&format!("`{program}` does not open a browser ({error}); open {url} in one"));
    }
}

/// `BROWSER`, or what the system has for it where there is a screen.
fn program(env: &Env) -> Option<&str> {
    if let Some(chosen) = env.get_non_empty("BROWSER") {
        return Some(chosen);
    }
    if cfg!(target_os = "macos") {
        return Some("open");
    }
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env.get_non_empty(name).is_some());
    has_screen.then_some("xdg-open")
}

#[expect(clippy::disallowed_methods, reason = "the user's own browser, at the user's request")]
fn start(program: &str, url: &str) -> std::io::Result<()> {
    let quiet = Stdio::null;
    let mut child = Command::new(program).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn()?;
    // Somebody must take note of its end.
    std::thread::spawn(move || child.wait());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_opened_where_there_is_one() {
        assert_eq!(program(&Env::from_iter([("BROWSER", "firefox")])), Some("firefox"));
        if cfg!(target_os = "linux") {
            assert_eq!(program(&Env::from_iter([("BROWSER", ""), ("DISPLAY", ":0")])), Some("xdg-open"));
            assert_eq!(program(&Env::default()), None);
        }
    }
}
