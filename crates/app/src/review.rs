//! Skills that are written or taken in outside of a run: who reviews them, and the one door that packages come in by.
//!
//! Invariant: a model that is there and does not answer is no reason to do without; only whoever says so does without.

use std::sync::Arc;

use hart_kernel::RunContext;
use hart_knowledge::skills::{Inspected, InstallError, InstallOptions, Installed, Reviewer, has_executables};

use crate::choice::{self, ChooseError};
use crate::workshop::Workshop;
use crate::{home, wire};

/// The model that is configured for it, or the one that a run would have; nobody where no model is connected.
pub(crate) async fn reviewer(workshop: &Workshop) -> Result<Reviewer, ChooseError> {
    let review = &workshop.config.skills.review;
    let chosen = choice::choose(workshop, review.model.as_deref()).await?;
    let model = (!chosen.is_demo()).then_some(chosen.model);
    Ok(Reviewer::new(model, review.fail_closed))
}

/// Takes a package in for everyone: scanned, reviewed, locked.
pub(crate) async fn take_in(
    workshop: &Workshop,
    place: String,
    inspected: Inspected,
    options: InstallOptions,
) -> Result<Installed, InstallError> {
    let review = reviewed(workshop, &inspected, options).await?;
    let (library, home) = (Arc::clone(&workshop.skills), workshop.config.home.clone());
    let name = inspected.name().unwrap_or_default().to_owned();
    let failed = |source| InstallError::Io { name: name.clone(), source };
    let installing = tokio::task::spawn_blocking({
        let name = name.clone();
        move || {
            let ready = home::prepare(&home).and_then(|()| library.prepare_once());
            ready.map_err(|source| InstallError::Io { name, source })?;
            library.install(&place, inspected, options, wire::now())
        }
    });
    let installed = installing.await.map_err(|error| failed(std::io::Error::other(error)))??;
    Ok(Installed { review, ..installed })
}

async fn reviewed(
    workshop: &Workshop,
    inspected: &Inspected,
    options: InstallOptions,
) -> Result<Option<String>, InstallError> {
    let Inspected { package, scan, .. } = inspected;
    let Some(name) = inspected.name().filter(|_| !options.without_review) else { return Ok(None) };
    let folder = workshop.skills.config().installs().join(name);
    if (scan.blocked() && !options.despite_findings) || (folder.exists() && !options.replace) {
        // It will be refused whatever a model says, so none is asked.
        return Ok(None);
    }
    let against = |why: String| InstallError::Review { name: name.to_owned(), why };
    let reviewer = reviewer(workshop).await.map_err(|error| against(error.to_string()))?;
    if reviewer.is_nobody() && !has_executables(package) {
        // On the scanner's word: whoever has no model could take in nothing otherwise.
        return Ok(None);
    }
    let said = reviewer.look(&context(), package, scan).await;
    said.map_err(|error| against(error.to_string()))
}

/// There is no run that it is done for.
pub(crate) fn context() -> RunContext {
    RunContext::new("".into())
}
