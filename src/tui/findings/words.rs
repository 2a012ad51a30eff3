pub use crate::export::report::mark;

/// The mark of a change: of bandwidth after over before.
pub fn direction(ratio: f64) -> &'static str {
    if ratio < 1.0 { "↓" } else { "↑" }
}
