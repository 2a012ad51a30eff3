//! Other tools' files: each file of the corpus read or refused as a person would, and no input that breaks an importer.

mod classes;
mod corpus;
mod damage;
mod fed;
mod measured;
mod printed;
mod seeds;
