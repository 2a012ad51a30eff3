//! (placeholder)

pub mod doctor;
