use crate::diagnose::Severity;

/// The mark of a change: of bandwidth after over before.
pub fn direction(ratio: f64) -> &'static str {
    if ratio < 1.0 { "↓" } else { "↑" }
}

/// The mark of a severity.
pub const fn mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Problem => "▲",
        Severity::Warning => "●",
        Severity::Note => "○",
    }
}
