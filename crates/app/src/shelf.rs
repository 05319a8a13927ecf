//! The skills that a run is offered: those of the house and its user's own, as they are when it begins.
//!
//! Invariant: a run whose skills cannot be read begins without them, and the log says why.

use std::path::PathBuf;
use std::sync::Arc;

use hart_knowledge::skills::{Catalogue, Library, TroubleKind};
use hart_types::UserId;

use crate::wire;
use crate::workshop::Workshop;

#[derive(Clone, Debug, Default)]
pub(crate) struct SkillShelf {
    pub(crate) catalogue: Arc<Catalogue>,
    /// Where the user's own are, or would be.
    pub(crate) user: Option<PathBuf>,
}

/// Lays out what comes with hart, once a process, and looks at all there is.
pub(crate) async fn of(workshop: &Workshop, user: &UserId) -> SkillShelf {
    let config = &workshop.config.skills;
    if config.offered.is_none() {
        return SkillShelf::default();
    }
    let (library, own) = (Arc::clone(&workshop.skills), workshop.user_skills(user));
    let looked = tokio::task::spawn_blocking(move || {
        prepared(&library);
        let catalogue = library.catalogue(Some(&own), wire::now());
        SkillShelf { catalogue, user: Some(own) }
    });
    let shelf = looked.await.unwrap_or_default();
    for trouble in shelf.catalogue.troubles().iter().filter(|trouble| trouble.kind != TroubleKind::Shadowed) {
        let (place, name) = (&trouble.place, &trouble.name);
        tracing::debug!(%place, %name, "a skill is not offered: {}; {}", trouble.message, trouble.help);
    }
    shelf
}

fn prepared(library: &Library) {
    if let Err(error) = library.prepare_once() {
        tracing::warn!(%error, "the skills that come with hart cannot be laid out");
    }
}
