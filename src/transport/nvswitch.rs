//! How far the fabric of NVLink switches is configured, as every GPU sees it. It stands here, not in `discover`, because
//! nvml-wrapper 0.13 has no safe call for it.

use std::collections::{BTreeMap, BTreeSet};

use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::{
    NVML_GPU_FABRIC_STATE_COMPLETED, NVML_GPU_FABRIC_STATE_IN_PROGRESS, NVML_GPU_FABRIC_STATE_NOT_STARTED, nvmlGpuFabricInfo_t,
};

use crate::discover::nvml::{Failures, Whom, counted, phrase};
use crate::topology::Hardware;
use crate::topology::hardware::{GpuLinkKind, NoteKind};

const NVSWITCH: &str = "NVSwitch";

/// Say which GPUs wait for the fabric manager or were refused by it: NVLinks are up then, but nothing moves over them. Asks nothing
/// where `hardware` has no NVLinks.
pub fn look(hardware: &mut Hardware, nvml: &Nvml) {
    if !hardware.gpu_links.iter().any(|link| link.kind == GpuLinkKind::Nvlink) {
        return;
    }
    let mut failures = Failures::default();
    let mut unready: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for index in 0..nvml.device_count().unwrap_or(0) {
        // A GPU that cannot be had is told by `discover`.
        let Ok(device) = nvml.device_by_index(index) else { continue };
        let info = match fabric(nvml, &device) {
            // Drivers before 530 have no such call.
            Err(NvmlError::FailedToLoadSymbol(_)) => None,
            answer => failures.ask("nvmlDeviceGetGpuFabricInfo", Whom::Gpu(index), answer),
        };
        if let Some(why) = info.and_then(|info| why_unready(&info)) {
            unready.entry(why).or_default().insert(index);
        }
    }
    failures.tell(hardware);
    if !unready.is_empty() {
        // What follows from it was guessed before; this is the cause.
        hardware.notes.retain(|note| note.about != NVSWITCH);
    }
    for (why, gpus) in unready {
        let text = format!(
            "{}: {why}. CUDA does not start there, or without NVLinks (systemctl status nvidia-fabricmanager)",
            counted("GPU", &gpus)
        );
        hardware.note(NoteKind::Warning, NVSWITCH, text);
    }
}

fn fabric(nvml: &Nvml, device: &Device<'_>) -> Result<nvmlGpuFabricInfo_t, NvmlError> {
    let call = nvml_sym(nvml.lib().nvmlDeviceGetGpuFabricInfo.as_ref())?;
    let mut info = nvmlGpuFabricInfo_t { clusterUuid: [0; 16], status: 0, cliqueId: 0, state: 0 };
    // SAFETY: the handle is of the same, still opened library, which writes one struct of this layout to the place given.
    #[allow(unsafe_code, reason = "nvml-wrapper has no safe call for the fabric's state")]
    nvml_try(unsafe { call(device.handle(), &raw mut info) })?;
    Ok(info)
}

fn why_unready(info: &nvmlGpuFabricInfo_t) -> Option<String> {
    match u32::from(info.state) {
        NVML_GPU_FABRIC_STATE_NOT_STARTED => Some("has not begun to register with the fabric manager, which may not be running".to_owned()),
        NVML_GPU_FABRIC_STATE_IN_PROGRESS => Some("still waits for the fabric manager".to_owned()),
        NVML_GPU_FABRIC_STATE_COMPLETED => {
            let failed = nvml_try(info.status).err()?;
            Some(format!("the fabric manager could not configure it ({})", phrase(&failed)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_configured_fabric_is_ready() {
        let why = |state, status| why_unready(&nvmlGpuFabricInfo_t { clusterUuid: [0; 16], status, cliqueId: 0, state });
        assert_eq!((why(0, 0), why(3, 0)), (None, None));
        assert!(why(1, 0).unwrap().contains("not be running"));
        assert!(why(2, 0).unwrap().contains("still waits"));
        assert!(why(3, 999).unwrap().contains("Unknown: an internal error"));
    }
}
