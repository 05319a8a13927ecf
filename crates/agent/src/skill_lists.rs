//! What the prompt says of skills, as it was written for earlier agents.
//!
//! Invariant: a text is used again only for the same skills, settings and model, so nothing but time depends on it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use hart_knowledge::skills::Catalogue;

use crate::skill_listing::{Listing, SkillsConfig};

/// Keeps the newest list for the agents to come; see [`Skills::sharing`](crate::middleware::Skills::sharing).
#[derive(Debug, Default)]
pub struct SkillLists(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    catalogue: Weak<Catalogue>,
    config: SkillsConfig,
    model: String,
    list: Arc<SkillList>,
}

/// What is the same for every run with the same skills, settings and model.
#[derive(Debug, Default)]
pub(crate) struct SkillList {
    /// The list, where all of them are in it.
    pub(crate) whole: OnceLock<Listing>,
    /// Whether there are tools to find the others.
    pub(crate) has_tools: OnceLock<bool>,
    joined: Mutex<Option<Joined>>,
}

/// A prompt and a list behind it.
#[derive(Debug)]
struct Joined {
    system: Arc<str>,
    list: Arc<str>,
    both: Arc<str>,
}

impl SkillLists {
    pub(crate) fn of(
        &self,
        catalogue: &Arc<Catalogue>,
        config: &SkillsConfig,
        model: &str,
    ) -> Arc<SkillList> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = &*kept
            && Weak::as_ptr(&kept.catalogue) == Arc::as_ptr(catalogue)
            && kept.config == *config
            && kept.model == model
        {
            return Arc::clone(&kept.list);
        }
        let list = Arc::<SkillList>::default();
        *kept = Some(Kept {
            // As long as it is held, no other one has this address.
            catalogue: Arc::downgrade(catalogue),
            config: config.clone(),
            model: model.to_owned(),
            list: Arc::clone(&list),
        });
        list
    }
}

impl SkillList {
    /// The list behind the prompt. The same text is the same allocation: whoever has encoded or counted it knows it again.
    pub(crate) fn behind(&self, system: Arc<str>, list: Arc<str>) -> Arc<str> {
        let same = |a: &Arc<str>, b: &Arc<str>| Arc::ptr_eq(a, b) || a == b;
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        match &*joined {
            Some(last) if same(&last.system, &system) && same(&last.list, &list) => Arc::clone(&last.both),
            _ => {
                let both: Arc<str> = format!("{system}\n\n{list}").into();
                *joined = Some(Joined { system, list, both: Arc::clone(&both) });
                both
            }
        }
    }
}
