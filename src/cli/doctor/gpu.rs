use super::here::Here;
use super::{Found, State};
use crate::transport::libraries::{self, Library};

#[cfg(feature = "nvml")]
pub(super) fn nvml(_: &Here) -> Found {
    const FIX: &str =
        "install NVIDIA's driver (its libnvidia-ml.so.1), or set TOPOSCOPE_NVML to where it is; start a container with --gpus all";
    let nvml = match crate::discover::nvml::open(None) {
        Ok(nvml) => nvml,
        Err(error) => return Found::not(State::Absent, format!("not usable: {error}"), FIX),
    };
    let driver = nvml.sys_driver_version().unwrap_or_else(|_| "?".to_owned());
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => return Found::not(State::Warn, format!("driver {driver}, but no count of devices: {error}"), FIX),
    };
    // Names with their number, in the order of the first of each.
    let mut names: Vec<(String, u32)> = Vec::new();
    for index in 0..count {
        let name = nvml.device_by_index(index).and_then(|device| device.name()).unwrap_or_else(|error| error.to_string());
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, number)) => *number += 1,
            None => names.push((name, 1)),
        }
    }
    let names: Vec<String> = names.into_iter().map(|(name, number)| format!("{number} x {name}")).collect();
    let names = if names.is_empty() { "no GPU".to_owned() } else { names.join(", ") };
    Found::ok(format!("driver {driver}, {names}"))
}

#[cfg(not(feature = "nvml"))]
pub(super) fn nvml(_: &Here) -> Found {
    Found::not(State::Skipped, "this build does not look for it", "cargo build --release --features nvml")
}

pub(super) fn cuda(here: &Here) -> Found {
    let library = libraries::cuda_driver();
    let visible = here.var("CUDA_VISIBLE_DEVICES").map(|visible| format!(" with CUDA_VISIBLE_DEVICES={visible}")).unwrap_or_default();
    if let Library::Present(fact) = &library
        && libraries::cuda_devices().is_ok_and(|devices| devices.is_empty())
    {
        return Found::not(
            State::Absent,
            format!("{fact}, and it shows no GPU{visible}"),
            "unset CUDA_VISIBLE_DEVICES; look at nvidia-smi",
        );
    }
    let library_is_there = matches!(library, Library::Present(_));
    let found = told(library, "the loader finds no libcuda.so.1", "install NVIDIA's driver; in a container, start it with --gpus all");
    if library_is_there { Found { fact: format!("{}{visible}", found.fact), ..found } } else { found }
}

/// Whether GPUs reach each other's memory.
pub(super) fn peers(_: &Here) -> Found {
    let devices = match libraries::cuda_devices() {
        Ok(devices) => devices,
        Err(why) => return Found::not(State::Skipped, "no GPUs to ask about", why),
    };
    let pairs: Vec<(usize, usize)> =
        (0..devices.len()).flat_map(|a| (0..devices.len()).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    if pairs.is_empty() {
        return Found::ok(format!("{} GPU, nobody to reach", devices.len()));
    }
    let mut shut = Vec::new();
    for &(a, b) in &pairs {
        match libraries::reaches(a, b) {
            Ok(true) => {}
            Ok(false) => shut.push((a, b)),
            Err(why) => {
                return Found::not(
                    State::Warn,
                    format!("whether GPU {a} reaches GPU {b} is not told: {why}"),
                    "look at nvidia-smi topo -p2p r",
                );
            }
        }
    }
    let Some((a, b)) = shut.first() else { return Found::ok(format!("each of {} GPUs reaches each other", devices.len())) };
    Found::not(
        State::Warn,
        format!(
            "{} of {} pairs of GPUs, such as {a}→{b}, do not reach each other's memory: copies go through the host's",
            shut.len(),
            pairs.len()
        ),
        "look at nvidia-smi topo -p2p r; an IOMMU, ACS or a chipset may be in the way (toposcope discover tells)",
    )
}

#[cfg(feature = "nvml")]
pub(super) fn persistence(_: &Here) -> Found {
    const FIX: &str = "nvidia-smi -pm 1, or start nvidia-persistenced: GPUs that sleep take a second to start, and their clocks to rise";
    match crate::discover::nvml::Looks::open().and_then(|looks| looks.persistence()) {
        None => Found::not(State::Skipped, "nobody tells whether GPUs are kept awake", "it needs NVML and a GPU; see above"),
        Some(words) if words == "on" => Found::ok("GPUs are kept awake"),
        Some(words) => Found::not(State::Warn, format!("keeping GPUs awake is {words}"), FIX),
    }
}

#[cfg(not(feature = "nvml"))]
pub(super) fn persistence(_: &Here) -> Found {
    Found::not(State::Skipped, "this build does not look for it", "cargo build --release --features nvml")
}

/// Whether Open MPI moves the memory of GPUs, as it says of itself; others do not tell.
pub(super) fn mpi(here: &Here) -> Found {
    const OTHERS: &str = "move GPU memory by NCCL or by windows instead (--mover nccl, cuda_ipc_pull, cuda_ipc_push)";
    let Some(path) = here.program("ompi_info") else {
        return Found::not(State::Skipped, "no ompi_info on PATH to ask", format!("only Open MPI tells; {OTHERS}"));
    };
    let output = std::process::Command::new(path).args(["--parsable", "--all"]).stdin(std::process::Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let built =
        text.lines().find_map(|line| line.split_once("mpi_built_with_cuda_support:value:")).map(|(_, value)| value.trim() == "true");
    match built {
        Some(true) => Found::ok("Open MPI was built with CUDA"),
        Some(false) => {
            Found::not(State::Absent, "Open MPI was built without CUDA", format!("build it with --with-cuda, best over UCX; or {OTHERS}"))
        }
        None => Found::not(State::Warn, "ompi_info does not tell whether Open MPI was built with CUDA", OTHERS),
    }
}

pub(super) fn nccl(here: &Here) -> Found {
    let library = libraries::nccl();
    if library == Library::Absent {
        if let Some(named) = here.var("TOPOSCOPE_NCCL") {
            return Found::not(State::Absent, format!("TOPOSCOPE_NCCL names {named}, which is not there"), "unset it, or correct it");
        }
        // Wheels keep it where the loader does not look.
        if let Some(path) = here.wheels("nvidia/nccl/lib/libnccl.so.2").into_iter().next() {
            let fact = format!("the loader finds no libnccl.so.2, but a Python environment has {}", path.display());
            return Found::not(State::Absent, fact, format!("export TOPOSCOPE_NCCL={}", path.display()));
        }
    }
    let fix = "install libnccl2, or set TOPOSCOPE_NCCL to the libnccl.so.2 of your jobs, or LD_LIBRARY_PATH to its folder";
    told(library, "the loader finds no libnccl.so.2 and no libnccl.so", fix)
}

fn told(library: Library, absent: &str, fix: &str) -> Found {
    match library {
        Library::Present(fact) => Found::ok(fact),
        Library::Broken(fact) => {
            Found::not(State::Warn, format!("there, but it does not work: {fact}"), "check that driver and library fit (nvidia-smi)")
        }
        Library::Absent => Found::not(State::Absent, absent, fix),
        Library::NotBuilt => Found::not(State::Skipped, "this build does not look for it", "cargo build --release --features cuda"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_mpi_says_whether_it_moves_gpu_memory() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("ompi_info");
        let found = |answer: &str| {
            let line = "mca:mpi:base:param:mpi_built_with_cuda_support:value:";
            // Written by another process: one that this one starts meanwhile would hold the file open, and it could not be run.
            let script = format!("printf '#!/bin/sh\\necho package:x\\necho {line}{answer}\\n' > \"$0\" && chmod 755 \"$0\"");
            assert!(std::process::Command::new("sh").arg("-c").arg(script).arg(&path).status().unwrap().success());
            mpi(&Here::at(root.path(), [("PATH", root.path().to_str().unwrap())]))
        };
        assert_eq!(found("true").state, State::Ok);
        let without = found("false");
        assert!(without.state == State::Absent && without.fix.unwrap().contains("--mover nccl"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mpi(&Here::at(root.path(), [("PATH", root.path().to_str().unwrap())])).state, State::Skipped);
    }

    #[test]
    fn a_library_of_a_python_environment_is_told_with_the_way_to_use_it() {
        if libraries::nccl() != Library::Absent {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        for below in ["venv/lib/python3.12/site-packages", "usr/lib/python3/dist-packages"] {
            let folder = root.path().join(below).join("nvidia/nccl/lib");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("libnccl.so.2"), "").unwrap();
        }
        let environment = root.path().join("venv");
        let found = nccl(&Here::at(root.path(), [("VIRTUAL_ENV", environment.to_str().unwrap())]));
        assert!(found.fact.contains("venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"), "{found:?}");
        assert!(found.fix.unwrap().starts_with("export TOPOSCOPE_NCCL=/"));
        assert!(nccl(&Here::at(root.path(), [])).fact.contains("usr/lib/python3/dist-packages"), "the system's own, without a variable");
        std::fs::remove_dir_all(root.path().join("usr")).unwrap();
        assert!(nccl(&Here::at(root.path(), [])).fact.contains("finds no libnccl.so.2"));
    }
}
