//! The screen (placeholder).
