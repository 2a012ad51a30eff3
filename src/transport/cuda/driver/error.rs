use std::ffi::{CStr, c_char};

use super::api::{Api, Code};

/// What this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error(
        "no CUDA driver here (libcuda.so.1 is not found); it comes with NVIDIA's driver package, and containers get it with --gpus all"
    )]
    Library,
    #[error("NVIDIA's CUDA driver cannot be loaded: {0}")]
    Broken(String),
    #[error("this CUDA driver has no {0}; a newer NVIDIA driver has it")]
    Symbol(&'static str),
}

/// A call that the driver refused, or could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    #[error(transparent)]
    Missing(#[from] Missing),
    /// the driver's name for it, as `cuGetErrorName` tells it
    #[error("{call} says {name}")]
    Refused { call: &'static str, code: u32, name: String },
    #[error("GPU {wanted} is not here: the CUDA driver sees {found}")]
    NoDevice { wanted: usize, found: usize },
    /// a library over the driver, in its own words
    #[error("{0}")]
    Library(String),
    #[error("{length} bytes at {at} are outside of a buffer of {size} bytes")]
    Outside { at: usize, length: usize, size: usize },
}

impl CudaError {
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    pub const fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Refused { code: OUT_OF_MEMORY, .. })
    }

    /// The same, found beforehand.
    pub fn out_of_memory() -> Self {
        Self::Refused { call: "cuMemGetInfo", code: OUT_OF_MEMORY, name: "less free than asked for".to_owned() }
    }
}

const OUT_OF_MEMORY: Code = 2;
/// `CUDA_ERROR_NOT_READY`: work is still under way.
pub(super) const NOT_READY: Code = 600;
/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
pub(super) const ALREADY_ENABLED: Code = 704;

impl Api {
    /// Nothing for success, else the error by its name.
    #[inline]
    pub(super) fn checked(&self, call: &'static str, code: Code) -> Result<(), CudaError> {
        if code == 0 { Ok(()) } else { Err(self.refused(call, code)) }
    }

    #[cold]
    fn refused(&self, call: &'static str, code: Code) -> CudaError {
        let mut name: *const c_char = std::ptr::null();
        // SAFETY: the driver writes the address of a constant string of its own, or null for a code that it does not know.
        let told = unsafe {
            (self.get_error_name)(code, &raw mut name);
            if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
        };
        let name = if told.is_empty() { format!("error {code}") } else { crate::units::plain(&told) };
        CudaError::Refused { call, code, name }
    }
}
