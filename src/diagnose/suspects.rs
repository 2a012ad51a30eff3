//! The likely causes of what is seen, with what speaks for and against each.

use super::{Shape, Suspect, View};

/// Likeliest first.
pub(super) fn suspects(view: &View<'_>, shape: &Shape) -> Vec<Suspect> {
    let _ = (view, shape);
    Vec::new()
}
