//! The driver's calls, looked up once by name. Results are plain numbers: a newer driver may know codes that this program does not.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUcontext, CUdevice, CUdeviceptr, CUevent, CUipcMemHandle, CUstream, CUuuid};

use super::super::loading::{Unloaded, load};
use super::Missing;

/// A `CUresult`.
pub(super) type Code = c_uint;
/// What `cuLaunchHostFunc` calls.
pub(super) type HostFunction = unsafe extern "C" fn(*mut c_void);

macro_rules! api {
    (
        needed { $($field:ident: $name:literal ($($argument:ty),*);)* }
        optional { $($(#[$hint:meta])* $maybe:ident: $known:literal ($($given:ty),*);)* }
    ) => {
        /// Addresses of the calls.
        #[derive(Debug)]
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> Code,)*
            $($(#[$hint])* pub(super) $maybe: Option<unsafe extern "C" fn($($given),*) -> Code>,)*
        }

        impl Api {
            /// Look all of them up in a library that is there.
            fn look_up() -> Result<Self, Missing> {
                // SAFETY: the caller has seen the library; it stays loaded for ever.
                let library = unsafe { cudarc::driver::sys::culib() };
                Ok(Self {
                    // SAFETY: the signatures are those of cuda.h for these names.
                    $($field: *unsafe { library.get(concat!($name, "\0").as_bytes()) }.map_err(|_| Missing::Symbol($name))?,)*
                    // SAFETY: as above.
                    $($maybe: unsafe { library.get(concat!($known, "\0").as_bytes()) }.ok().map(|symbol| *symbol),)*
                })
            }
        }
    };
}

api! {
    needed {
        init: "cuInit" (c_uint);
        driver_version: "cuDriverGetVersion" (*mut c_int);
        get_error_name: "cuGetErrorName" (Code, *mut *const c_char);
        device_count: "cuDeviceGetCount" (*mut c_int);
        device_get: "cuDeviceGet" (*mut CUdevice, c_int);
        device_name: "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
        device_total: "cuDeviceTotalMem_v2" (*mut usize, CUdevice);
        device_attribute: "cuDeviceGetAttribute" (*mut c_int, c_uint, CUdevice);
        device_uuid: "cuDeviceGetUuid" (*mut CUuuid, CUdevice);
        device_address: "cuDeviceGetPCIBusId" (*mut c_char, c_int, CUdevice);
        retain: "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
        release: "cuDevicePrimaryCtxRelease_v2" (CUdevice);
        set_current: "cuCtxSetCurrent" (CUcontext);
        can_access: "cuDeviceCanAccessPeer" (*mut c_int, CUdevice, CUdevice);
        enable_access: "cuCtxEnablePeerAccess" (CUcontext, c_uint);
        memory_info: "cuMemGetInfo_v2" (*mut usize, *mut usize);
        allocate: "cuMemAlloc_v2" (*mut CUdeviceptr, usize);
        free: "cuMemFree_v2" (CUdeviceptr);
        host_allocate: "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
        host_free: "cuMemFreeHost" (*mut c_void);
        host_address: "cuMemHostGetDevicePointer_v2" (*mut CUdeviceptr, *mut c_void, c_uint);
        copy: "cuMemcpyDtoDAsync_v2" (CUdeviceptr, CUdeviceptr, usize, CUstream);
        copy_in: "cuMemcpyHtoDAsync_v2" (CUdeviceptr, *const c_void, usize, CUstream);
        copy_out: "cuMemcpyDtoHAsync_v2" (*mut c_void, CUdeviceptr, usize, CUstream);
        copy_peer: "cuMemcpyPeerAsync" (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream);
        copy_rows: "cuMemcpy2DAsync_v2" (*const CUDA_MEMCPY2D, CUstream);
        fill: "cuMemsetD8Async" (CUdeviceptr, u8, usize, CUstream);
        stream_create: "cuStreamCreate" (*mut CUstream, c_uint);
        stream_destroy: "cuStreamDestroy_v2" (CUstream);
        stream_query: "cuStreamQuery" (CUstream);
        event_create: "cuEventCreate" (*mut CUevent, c_uint);
        event_destroy: "cuEventDestroy_v2" (CUevent);
        event_record: "cuEventRecord" (CUevent, CUstream);
        event_query: "cuEventQuery" (CUevent);
        event_elapsed: "cuEventElapsedTime" (*mut f32, CUevent, CUevent);
        ipc_handle: "cuIpcGetMemHandle" (*mut CUipcMemHandle, CUdeviceptr);
        ipc_open: "cuIpcOpenMemHandle_v2" (*mut CUdeviceptr, CUipcMemHandle, c_uint);
        ipc_close: "cuIpcCloseMemHandle" (CUdeviceptr);
        launch_host: "cuLaunchHostFunc" (CUstream, HostFunction, *mut c_void);
    }
    optional {
        /// CUDA 11.7 and later, without a switch of the kernel module
        wait_value: "cuStreamWaitValue32_v2" (CUstream, CUdeviceptr, u32, c_uint);
        device_uuid_v2: "cuDeviceGetUuid_v2" (*mut CUuuid, CUdevice);
    }
}

impl Api {
    /// The driver, loaded and initialised.
    pub(super) fn get() -> Result<&'static Self, super::CudaError> {
        static API: OnceLock<Result<Api, Missing>> = OnceLock::new();
        let api = API.get_or_init(|| {
            // SAFETY: loads libcuda and runs its initialisers, which is what is asked for.
            if unsafe { cudarc::driver::sys::is_culib_present() } {
                return Self::look_up();
            }
            match load(&["libcuda.so.1", "libcuda.so"]) {
                Err(Unloaded::Broken(why)) => Err(Missing::Broken(why)),
                Ok(_) | Err(Unloaded::Absent(_)) => Err(Missing::Library),
            }
        });
        let api = api.as_ref().map_err(Clone::clone)?;
        // SAFETY: may be called any number of times.
        api.checked("cuInit", unsafe { (api.init)(0) })?;
        Ok(api)
    }
}
