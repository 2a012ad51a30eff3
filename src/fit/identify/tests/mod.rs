//! Identification against what was published and against made-up machines whose answers are known.

mod made;
mod published;
