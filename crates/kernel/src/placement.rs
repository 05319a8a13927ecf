//! Where a middleware sits in somebody else's chain.
//!
//! Invariant: the tail stays last, and an anchor that cannot be honoured is an error, never a guess.

use std::any::{Any, TypeId};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::middleware::short_type_name;
use crate::{Middleware, Toggle};

/// The place a middleware wants, by its author (`Middleware::placement`) or by whoever installs it ([`PlaceExt`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Inside all built-ins but the tail; or in the place of the built-in that has its name.
    #[default]
    Standard,
    /// Next to the anchor, on its outer side.
    Before(Anchor),
    /// Next to the anchor, on its inner side.
    After(Anchor),
    At(Slot),
}

impl Placement {
    pub fn before<M: Middleware>() -> Self {
        Self::Before(Anchor::of::<M>())
    }

    pub fn after<M: Middleware>() -> Self {
        Self::After(Anchor::of::<M>())
    }
}

/// A guarantee about what a middleware sees, whatever built-ins come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Outermost around the model: one call per turn, before any built-in rewrites the request.
    ModelLogical,
    /// Innermost around the model: the request as it goes out.
    ModelPhysical,
    /// Outermost around tools: the call as the model made it, the result as the model will read it.
    ToolVisible,
    /// Innermost around tools: the call as the tool gets it, the result as the tool gave it.
    ToolRaw,
}

impl Slot {
    fn is_outer(self) -> bool {
        matches!(self, Self::ModelLogical | Self::ToolVisible)
    }
}

/// A middleware's type, to sit next to.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    type_id: TypeId,
    name: &'static str,
}

impl Anchor {
    pub fn of<M: Middleware>() -> Self {
        Self { type_id: TypeId::of::<M>(), name: short_type_name::<M>() }
    }

    fn is(self, middleware: &Arc<dyn Middleware>) -> bool {
        (middleware.as_ref() as &dyn Any).type_id() == self.type_id
    }
}

impl PartialEq for Anchor {
    fn eq(&self, other: &Self) -> bool {
        self.type_id == other.type_id
    }
}

impl Eq for Anchor {}

/// A middleware and its place.
#[derive(Clone)]
pub struct Placed {
    middleware: Arc<dyn Middleware>,
    placement: Placement,
}

impl Placed {
    pub fn new(middleware: Arc<dyn Middleware>, placement: Placement) -> Self {
        Self { middleware, placement }
    }
}

impl<M: Middleware> From<M> for Placed {
    fn from(middleware: M) -> Self {
        Self { placement: middleware.placement(), middleware: Arc::new(middleware) }
    }
}

impl From<Arc<dyn Middleware>> for Placed {
    fn from(middleware: Arc<dyn Middleware>) -> Self {
        Self { placement: middleware.placement(), middleware }
    }
}

impl fmt::Debug for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.middleware.name(), self.placement)
    }
}

/// Chooses a place at the call: `agent.with(Audit.after::<Sandbox>())`.
pub trait PlaceExt: Middleware + Sized {
    fn before<A: Middleware>(self) -> Placed {
        Placed::new(Arc::new(self), Placement::before::<A>())
    }

    fn after<A: Middleware>(self) -> Placed {
        Placed::new(Arc::new(self), Placement::after::<A>())
    }

    fn at(self, slot: Slot) -> Placed {
        Placed::new(Arc::new(self), Placement::At(slot))
    }
}

impl<M: Middleware> PlaceExt for M {}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    #[error(
        "`{first}` and `{second}` both want the place next to `{anchor}`; anchor one of them to the other instead"
    )]
    Contested { anchor: &'static str, first: &'static str, second: &'static str },
    #[error(
        "`{name}` wants a place next to `{anchor}`, which is not in the chain: {}; anchor it to one of these, or switch \
         `{anchor}` on",
        chain.join(", ")
    )]
    Unresolved { name: &'static str, anchor: &'static str, chain: Vec<&'static str> },
    #[error("{} anchor to each other in a circle; give one of them a place of its own", quoted(names))]
    Circular { names: Vec<&'static str> },
    #[error("`{name}` wants a place after `{tail}`, and nothing comes after that; place it before `{tail}`")]
    BehindTail { name: &'static str, tail: &'static str },
    #[error("two middlewares are called `{name}`; override `Middleware::name` of one of them")]
    DuplicateName { name: &'static str },
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}

/// A chain under construction, outermost first. Each link remembers the built-in it stands for, so that one may anchor
/// to a built-in that somebody replaced.
#[derive(Clone, Default)]
pub struct Chain {
    links: Vec<Link>,
}

#[derive(Clone)]
struct Link {
    stands_for: Anchor,
    middleware: Arc<dyn Middleware>,
}

impl Chain {
    pub fn push<M: Middleware>(&mut self, middleware: M) {
        self.links.push(Link { stands_for: Anchor::of::<M>(), middleware: Arc::new(middleware) });
    }

    /// A built-in that may be off, or somebody's own.
    pub fn feature<M: Middleware>(&mut self, toggle: Toggle, default: impl FnOnce() -> M) {
        let middleware = toggle.resolve(default);
        self.links.extend(middleware.map(|middleware| Link { stands_for: Anchor::of::<M>(), middleware }));
    }

    /// A built-in that may be missing.
    pub fn maybe<M: Middleware>(&mut self, middleware: Option<M>) {
        if let Some(middleware) = middleware {
            self.push(middleware);
        }
    }

    pub fn len(&self) -> usize {
        self.links.len()
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Adds `extras`, all before `tail`. They may anchor to each other, in any order.
    pub fn complete(
        mut self,
        extras: Vec<Placed>,
        tail: Self,
    ) -> Result<Vec<Arc<dyn Middleware>>, ChainError> {
        let standard = self.links.len();
        self.links.extend(tail.links);
        let extras = self.replace_by_name(extras);
        contested(&extras)?;
        let mut rest = self.links.split_off(standard);
        let (mut outer, mut inner, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        for Placed { middleware, placement } in extras {
            match placement {
                Placement::Standard => self.links.push(Link::own(middleware)),
                Placement::At(slot) if slot.is_outer() => outer.push(Link::own(middleware)),
                Placement::At(_) => inner.push(Link::own(middleware)),
                Placement::Before(anchor) => waiting.push(Waiting { middleware, anchor, offset: 0 }),
                Placement::After(anchor) => waiting.push(Waiting { middleware, anchor, offset: 1 }),
            }
        }
        self.links.splice(0..0, outer);
        self.links.append(&mut inner);
        let has_tail = !rest.is_empty();
        self.links.append(&mut rest);
        self.settle(waiting, has_tail)?;
        self.distinct()?;
        Ok(self.links.into_iter().map(|link| link.middleware).collect())
    }

    /// An extra without a place of its own that has a built-in's name takes that one's place.
    fn replace_by_name(&mut self, extras: Vec<Placed>) -> Vec<Placed> {
        let mut left = Vec::new();
        for extra in extras {
            let name = extra.middleware.name();
            match self.links.iter_mut().find(|link| link.goes_by(name)) {
                Some(link) if extra.placement == Placement::Standard => link.middleware = extra.middleware,
                _ => left.push(extra),
            }
        }
        left
    }

    /// Puts each next to its anchor as soon as the anchor is there.
    fn settle(&mut self, mut waiting: Vec<Waiting>, has_tail: bool) -> Result<(), ChainError> {
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut still = Vec::new();
            for extra in waiting {
                match self.links.iter().position(|link| link.is(extra.anchor)) {
                    Some(at) if has_tail && at + extra.offset >= self.links.len() => {
                        let name = extra.middleware.name();
                        return Err(ChainError::BehindTail { name, tail: extra.anchor.name });
                    }
                    Some(at) => self.links.insert(at + extra.offset, Link::own(extra.middleware)),
                    None => still.push(extra),
                }
            }
            if still.len() == before {
                return Err(self.stuck(&still));
            }
            waiting = still;
        }
        Ok(())
    }

    /// Nobody's anchor is there: either it never will be, or all wait for each other.
    fn stuck(&self, waiting: &[Waiting]) -> ChainError {
        let comes = |anchor: Anchor| waiting.iter().any(|other| anchor.is(&other.middleware));
        match waiting.iter().find(|extra| !comes(extra.anchor)) {
            Some(extra) => ChainError::Unresolved {
                name: extra.middleware.name(),
                anchor: extra.anchor.name,
                chain: self.links.iter().map(|link| link.middleware.name()).collect(),
            },
            None => ChainError::Circular { names: waiting.iter().map(|w| w.middleware.name()).collect() },
        }
    }

    fn distinct(&self) -> Result<(), ChainError> {
        let mut names = HashSet::with_capacity(self.links.len());
        match self.links.iter().map(|link| link.middleware.name()).find(|name| !names.insert(*name)) {
            Some(name) => Err(ChainError::DuplicateName { name }),
            None => Ok(()),
        }
    }
}

impl Link {
    fn own(middleware: Arc<dyn Middleware>) -> Self {
        let stands_for = Anchor { type_id: middleware.as_ref().type_id(), name: middleware.name() };
        Self { stands_for, middleware }
    }

    fn is(&self, anchor: Anchor) -> bool {
        self.stands_for == anchor || anchor.is(&self.middleware) || self.middleware.name() == anchor.name
    }

    fn goes_by(&self, name: &str) -> bool {
        self.stands_for.name == name || self.middleware.name() == name
    }
}

struct Waiting {
    middleware: Arc<dyn Middleware>,
    anchor: Anchor,
    offset: usize,
}

fn contested(extras: &[Placed]) -> Result<(), ChainError> {
    for (at, second) in extras.iter().enumerate() {
        let (Placement::Before(anchor) | Placement::After(anchor)) = second.placement else { continue };
        if let Some(first) = extras.iter().take(at).find(|first| first.placement == second.placement) {
            let (first, second) = (first.middleware.name(), second.middleware.name());
            return Err(ChainError::Contested { anchor: anchor.name, first, second });
        }
    }
    Ok(())
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.links.iter().map(|link| link.middleware.name())).finish()
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
