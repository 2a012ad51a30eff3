//! The driver's errors, by number and by name.

use cudarc::driver::sys::CUresult;

/// What a call answers with, in the shape of C.
pub type Code = u32;
pub type Answer<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident)*) => {
        /// Number and name with its final zero.
        const NAMES: &[(Code, &str)] = &[$((CUresult::$name as Code, concat!(stringify!($name), "\0"))),*];
    };
}

codes! {
    CUDA_SUCCESS CUDA_ERROR_INVALID_VALUE CUDA_ERROR_OUT_OF_MEMORY CUDA_ERROR_NOT_INITIALIZED CUDA_ERROR_DEINITIALIZED
    CUDA_ERROR_DEVICE_UNAVAILABLE CUDA_ERROR_NO_DEVICE CUDA_ERROR_INVALID_DEVICE CUDA_ERROR_INVALID_CONTEXT CUDA_ERROR_MAP_FAILED
    CUDA_ERROR_ALREADY_MAPPED CUDA_ERROR_NOT_MAPPED CUDA_ERROR_ECC_UNCORRECTABLE CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
    CUDA_ERROR_NVLINK_UNCORRECTABLE CUDA_ERROR_OPERATING_SYSTEM CUDA_ERROR_INVALID_HANDLE CUDA_ERROR_ILLEGAL_STATE
    CUDA_ERROR_NOT_FOUND CUDA_ERROR_NOT_READY CUDA_ERROR_ILLEGAL_ADDRESS CUDA_ERROR_LAUNCH_TIMEOUT
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED CUDA_ERROR_PEER_ACCESS_NOT_ENABLED CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
    CUDA_ERROR_CONTEXT_IS_DESTROYED CUDA_ERROR_TOO_MANY_PEERS CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED CUDA_ERROR_LAUNCH_FAILED CUDA_ERROR_NOT_PERMITTED CUDA_ERROR_NOT_SUPPORTED
    CUDA_ERROR_SYSTEM_NOT_READY CUDA_ERROR_SYSTEM_DRIVER_MISMATCH CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
    CUDA_ERROR_TIMEOUT CUDA_ERROR_UNKNOWN
}

pub const SUCCESS: Code = CUresult::CUDA_SUCCESS as Code;
pub const INVALID_VALUE: Code = CUresult::CUDA_ERROR_INVALID_VALUE as Code;
pub const OUT_OF_MEMORY: Code = CUresult::CUDA_ERROR_OUT_OF_MEMORY as Code;
pub const NOT_INITIALIZED: Code = CUresult::CUDA_ERROR_NOT_INITIALIZED as Code;
pub const NO_DEVICE: Code = CUresult::CUDA_ERROR_NO_DEVICE as Code;
pub const INVALID_DEVICE: Code = CUresult::CUDA_ERROR_INVALID_DEVICE as Code;
pub const INVALID_CONTEXT: Code = CUresult::CUDA_ERROR_INVALID_CONTEXT as Code;
pub const PEER_UNSUPPORTED: Code = CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED as Code;
pub const PEER_ENABLED: Code = CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED as Code;
pub const PEER_NOT_ENABLED: Code = CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED as Code;
pub const NOT_FOUND: Code = CUresult::CUDA_ERROR_NOT_FOUND as Code;
pub const INVALID_HANDLE: Code = CUresult::CUDA_ERROR_INVALID_HANDLE as Code;
pub const NOT_READY: Code = CUresult::CUDA_ERROR_NOT_READY as Code;
pub const CONTEXT_IS_DESTROYED: Code = CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED as Code;
pub const REGISTERED: Code = CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED as Code;
pub const NOT_REGISTERED: Code = CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED as Code;
pub const NOT_PERMITTED: Code = CUresult::CUDA_ERROR_NOT_PERMITTED as Code;
pub const NOT_SUPPORTED: Code = CUresult::CUDA_ERROR_NOT_SUPPORTED as Code;
pub const UNKNOWN: Code = CUresult::CUDA_ERROR_UNKNOWN as Code;

/// The name of an error, with its final zero.
pub fn name(code: Code) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name)
}

/// The error of a name.
pub fn code(name: &str) -> Option<Code> {
    NAMES.iter().find(|(_, known)| known.trim_end_matches('\0') == name).map(|(code, _)| *code)
}
