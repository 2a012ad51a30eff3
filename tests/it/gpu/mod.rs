//! Device memory without a GPU: stand-ins for CUDA's driver and NCCL, and what the program does with them.

mod binding;
pub mod stand_in;
