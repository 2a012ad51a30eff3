//! Machines whose answers are known because they were made up.
