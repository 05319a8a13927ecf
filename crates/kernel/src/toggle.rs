//! A feature with a built-in default: off, on, or somebody's own.
//!
//! Invariant: the default is built only when it is asked for.

use std::fmt;
use std::sync::Arc;

use crate::Middleware;

/// `true`, `false`, or a middleware to use instead of the built-in one.
///
/// ```
/// use hart_kernel::{Middleware, Toggle, async_trait};
///
/// struct MyTitles;
/// #[async_trait]
/// impl Middleware for MyTitles {}
///
/// assert!(matches!(Toggle::from(true), Toggle::On));
/// assert!(matches!(Toggle::from(MyTitles), Toggle::Custom(_)));
/// ```
#[derive(Clone, Default)]
pub enum Toggle {
    #[default]
    Off,
    On,
    Custom(Arc<dyn Middleware>),
}

impl Toggle {
    pub fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }

    /// What goes into the chain.
    pub fn resolve<M: Middleware>(self, default: impl FnOnce() -> M) -> Option<Arc<dyn Middleware>> {
        match self {
            Self::Off => None,
            Self::On => Some(Arc::new(default())),
            Self::Custom(middleware) => Some(middleware),
        }
    }
}

impl From<bool> for Toggle {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

impl<M: Middleware> From<M> for Toggle {
    fn from(middleware: M) -> Self {
        Self::Custom(Arc::new(middleware))
    }
}

impl From<Arc<dyn Middleware>> for Toggle {
    fn from(middleware: Arc<dyn Middleware>) -> Self {
        Self::Custom(middleware)
    }
}

impl fmt::Debug for Toggle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On => f.write_str("on"),
            Self::Custom(middleware) => write!(f, "{}", middleware.name()),
        }
    }
}
