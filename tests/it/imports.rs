//! Other tools' files: each file of the corpus read or refused as a person would, and no input that breaks an importer.

mod classes;
mod corpus;
mod damage;
mod measured;
mod seeds;
