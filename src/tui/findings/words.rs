use crate::diagnose::Severity;

/// The mark of a severity.
pub const fn mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Problem => "▲",
        Severity::Warning => "●",
        Severity::Note => "○",
    }
}
