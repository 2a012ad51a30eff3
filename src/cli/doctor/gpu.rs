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

pub(super) fn cuda(_: &Here) -> Found {
    told(libraries::cuda_driver(), "the loader finds no libcuda.so", "install NVIDIA's driver; in a container, start it with --gpus all")
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
