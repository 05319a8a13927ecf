//! The skills that a run is offered: those of the house and its user's own, as they are when it begins.
//!
//! Invariant: a run whose skills cannot be read begins without them, and the log says why.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hart_knowledge::skills::{Catalogue, Library, MANIFEST, Trouble, TroubleKind};
use hart_types::UserId;

use crate::wire;
use crate::workshop::Workshop;

#[derive(Clone, Debug, Default)]
pub(crate) struct SkillShelf {
    pub(crate) catalogue: Arc<Catalogue>,
    /// Where the user's own are, or would be.
    pub(crate) user: Option<PathBuf>,
}

/// What there is now; what cannot be used is told once, and again when its file changed.
pub(crate) async fn of(workshop: &Workshop, user: &UserId) -> SkillShelf {
    let config = &workshop.config.skills;
    if config.offered.is_none() {
        return SkillShelf::default();
    }
    let (library, own) = (Arc::clone(&workshop.skills), workshop.user_skills(user));
    if let Some(catalogue) = library.unchanged(Some(&own)) {
        // What of it cannot be used was told when it was found.
        return SkillShelf { catalogue, user: Some(own) };
    }
    let looked = tokio::task::spawn_blocking(move || {
        let catalogue = look(&library, &own);
        SkillShelf { catalogue, user: Some(own) }
    });
    let shelf = looked.await.unwrap_or_default();
    for trouble in shelf.catalogue.troubles().iter().filter(|trouble| trouble.kind != TroubleKind::Shadowed) {
        let Trouble { place, message, help, .. } = trouble;
        if workshop.told.is_new(&Path::new(place).join(MANIFEST), message) {
            tracing::warn!("a skill is not offered: {place}: {message}; {help}");
        }
    }
    shelf
}

/// Lays out what comes with hart, once a process, and looks at all there is; a user's own are in `own`.
pub(crate) fn look(library: &Library, own: &Path) -> Arc<Catalogue> {
    if let Err(error) = library.prepare_once() {
        tracing::warn!(%error, "the skills that come with hart cannot be laid out");
    }
    library.catalogue(Some(own), wire::now())
}
