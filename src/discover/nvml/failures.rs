//! What NVML did not tell, gathered so that one cause becomes one note however many calls and devices it hit.

use std::collections::{BTreeMap, BTreeSet};

use nvml_wrapper::error::NvmlError;

use crate::topology::Hardware;
use crate::topology::hardware::NoteKind;
use crate::units::{format_ranks, plain};

/// What a call asked about, by the driver's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    Library,
    Gpu(u32),
    /// a GPU and one of its NVLinks
    Link(u32, u32),
    /// from one GPU to another
    Pair(u32, u32),
    /// a GPU and one of its instances
    Instance(u32, u32),
}

/// NVML's return codes (`nvmlReturn_t` in nvml.h): the number, its name, what it means for who reads it.
const CODES: [(u32, &str, &str); 31] = [
    (1, "Uninitialized", "the library was not initialised"),
    (2, "InvalidArg", "the driver does not know what was asked about"),
    (3, "NotSupported", "this device or driver has no such thing"),
    (4, "NoPermission", "this user may not ask: run it as root, or ask who administers the host"),
    (5, "AlreadyInitialized", "the library was initialised before"),
    (6, "NotFound", "the driver does not find it"),
    (7, "InsufficientSize", "the driver had more to tell than there was room for"),
    (8, "InsufficientPower", "the GPU's power cables are not all connected"),
    (9, "DriverNotLoaded", "the kernel module is not loaded: modprobe nvidia, then see what nvidia-smi says"),
    (10, "Timeout", "the driver did not answer in time: see dmesg for Xid errors"),
    (11, "IrqIssue", "the kernel has trouble with the GPU's interrupts: see dmesg"),
    (12, "LibraryNotFound", "a library of the driver is missing: install the driver anew"),
    (13, "FunctionNotFound", "this driver is too old or too new to tell it"),
    (14, "CorruptedInfoROM", "the GPU's own description is damaged: it may have to be replaced"),
    (15, "GpuLost", "the GPU fell off the bus or cannot be reached: see dmesg for Xid 79; reset it or restart the host"),
    (16, "ResetRequired", "the GPU must be reset before it can be used: nvidia-smi --gpu-reset"),
    (17, "OperatingSystem", "the operating system or the control group keeps the GPU away: give the container its devices"),
    (18, "LibRmVersionMismatch", "library and kernel module are of different driver versions, as after an update: restart the host"),
    (19, "InUse", "the GPU is busy with something that excludes this"),
    (20, "InsufficientMemory", "out of memory"),
    (21, "NoData", "there is no reading of it"),
    (22, "VgpuEccNotSupported", "not available to virtual GPUs while ECC is on"),
    (23, "InsufficientResources", "the driver ran out of something it needs"),
    (24, "FreqNotSupported", "the GPU does not know that clock"),
    (25, "ArgumentVersionMismatch", "this driver expects a younger or older caller"),
    (26, "Deprecated", "this driver does not tell it any more"),
    (27, "NotReady", "the GPU is not ready yet: try again"),
    (28, "GpuNotFound", "there is no such GPU"),
    (29, "InvalidState", "the GPU is in a state in which it cannot tell"),
    (30, "ResetTypeNotSupported", "the GPU cannot be reset in that way"),
    (999, "Unknown", "an internal error of the driver: see dmesg for Xid errors"),
];

/// The first return code that nvml-wrapper 0.13 has no name for: below it, an unexpected number is an answer, no failure.
const FIRST_UNNAMED: u32 = 23;

/// Name and meaning of an error.
fn words(error: &NvmlError) -> (String, String) {
    let debug = format!("{error:?}");
    let name = debug.split('(').next().unwrap_or_default();
    let known = match error {
        NvmlError::FailedToLoadSymbol(_) => CODES.iter().find(|(code, ..)| *code == 13),
        NvmlError::UnexpectedVariant(number) => CODES.iter().find(|(code, ..)| code == number && *code >= FIRST_UNNAMED),
        _ => CODES.iter().find(|(_, known, _)| *known == name),
    };
    match (known, error) {
        (Some((_, name, meaning)), _) => ((*name).to_owned(), (*meaning).to_owned()),
        (None, NvmlError::UnexpectedVariant(_)) => (debug, "an answer that this program does not know".to_owned()),
        (None, error) => (name.to_owned(), plain(&error.to_string())),
    }
}

/// The error as a phrase: `GpuLost: the GPU fell off the bus …`.
pub fn phrase(error: &NvmlError) -> String {
    let (name, meaning) = words(error);
    format!("{name}: {meaning}")
}

/// True if a call succeeded but answered with a number younger than this program, such as a new architecture's.
pub const fn is_news(error: &NvmlError) -> bool {
    matches!(error, NvmlError::UnexpectedVariant(number) if *number < FIRST_UNNAMED)
}

/// Calls that one note names.
const MOST_CALLS: usize = 6;

/// Failed calls by error and by what they asked about.
#[derive(Debug, Default)]
pub struct Failures {
    /// (phrase, call) -> about whom, in the order in which they came
    found: Vec<(String, &'static str, BTreeSet<Whom>)>,
}

impl Failures {
    /// The answer, if there is one; otherwise its error is kept. That a device has no such thing (`NotSupported`) is no failure.
    pub fn ask<T>(&mut self, call: &'static str, whom: Whom, answer: Result<T, NvmlError>) -> Option<T> {
        if matches!(answer, Err(NvmlError::NotSupported)) { None } else { self.need(call, whom, answer) }
    }

    /// The answer to what every device must be able to tell.
    pub fn need<T>(&mut self, call: &'static str, whom: Whom, answer: Result<T, NvmlError>) -> Option<T> {
        let error = match answer {
            Ok(answer) => return Some(answer),
            Err(error) => phrase(&error),
        };
        match self.found.iter_mut().find(|(phrase, of, _)| (phrase, *of) == (&error, call)) {
            Some((.., whoms)) => drop(whoms.insert(whom)),
            None => self.found.push((error, call, BTreeSet::from([whom]))),
        }
        None
    }

    /// One note an error and set of GPUs, with the calls.
    pub fn tell(self, hardware: &mut Hardware) {
        let mut notes: Vec<(String, BTreeSet<u32>, Vec<String>)> = Vec::new();
        for (phrase, call, whoms) in self.found {
            let parts = parts(&whoms);
            let call = if parts.is_empty() { call.to_owned() } else { format!("{call} ({parts})") };
            let gpus = gpus(&whoms);
            match notes.iter_mut().find(|(other, about, _)| (other, about) == (&phrase, &gpus)) {
                Some((.., calls)) => calls.push(call),
                None => notes.push((phrase, gpus, vec![call])),
            }
        }
        for (phrase, gpus, mut calls) in notes {
            let about = if gpus.is_empty() { "NVML".to_owned() } else { counted("GPU", &gpus) };
            let more = calls.len().saturating_sub(MOST_CALLS);
            calls.truncate(MOST_CALLS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!("{}{more} failed with {phrase}. What it would tell is missing", calls.join(", "));
            hardware.note(NoteKind::Unseen, about, text);
        }
    }
}

/// The GPUs that a failure is about; of pairs, those that are in all of them, if there are such.
fn gpus(whoms: &BTreeSet<Whom>) -> BTreeSet<u32> {
    let of = |whom: &Whom| match *whom {
        Whom::Library => vec![],
        Whom::Gpu(gpu) | Whom::Link(gpu, _) | Whom::Instance(gpu, _) => vec![gpu],
        Whom::Pair(from, to) => vec![from, to],
    };
    let all: BTreeSet<u32> = whoms.iter().flat_map(of).collect();
    let is_pair = |whom: &Whom| matches!(whom, Whom::Pair(..));
    let common: BTreeSet<u32> =
        all.iter().copied().filter(|gpu| whoms.iter().all(|whom| is_pair(whom) && of(whom).contains(gpu))).collect();
    if common.is_empty() { all } else { common }
}

/// Links and instances: `links 0-17 of GPU 3`; GPUs with the same ones are told together.
fn parts(whoms: &BTreeSet<Whom>) -> String {
    let mut parts: BTreeMap<(&str, u32), BTreeSet<u32>> = BTreeMap::new();
    for whom in whoms {
        match *whom {
            Whom::Link(gpu, link) => drop(parts.entry(("link", gpu)).or_default().insert(link)),
            Whom::Instance(gpu, instance) => drop(parts.entry(("instance", gpu)).or_default().insert(instance)),
            Whom::Library | Whom::Gpu(_) | Whom::Pair(..) => {}
        }
    }
    let mut alike: BTreeMap<(&str, BTreeSet<u32>), BTreeSet<u32>> = BTreeMap::new();
    for ((what, gpu), numbers) in parts {
        alike.entry((what, numbers)).or_default().insert(gpu);
    }
    let names: Vec<_> =
        alike.into_iter().map(|((what, numbers), gpus)| format!("{} of {}", counted(what, &numbers), counted("GPU", &gpus))).collect();
    names.join("; ")
}

/// `GPU 3`, `links 0-17`.
pub fn counted(what: &str, numbers: &BTreeSet<u32>) -> String {
    let list: Vec<usize> = numbers.iter().map(|&number| number as usize).collect();
    format!("{what}{} {}", if list.len() == 1 { "" } else { "s" }, format_ranks(&list))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(failures: Failures) -> Vec<(String, String)> {
        let mut hardware = Hardware::default();
        failures.tell(&mut hardware);
        hardware.notes.into_iter().map(|note| (note.about, note.text)).collect()
    }

    #[test]
    fn equal_failures_are_one_note_that_names_the_devices() {
        let mut failures = Failures::default();
        for gpu in 0..8 {
            for link in 0..18 {
                assert_eq!(failures.ask::<()>("state", Whom::Link(gpu, link), Err(NvmlError::NoPermission)), None);
            }
        }
        failures.ask::<()>("state", Whom::Link(9, 4), Err(NvmlError::NoPermission));
        let told = told(failures);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, "GPUs 0-7,9");
        let text = "state (links 0-17 of GPUs 0-7; link 4 of GPU 9) failed with NoPermission: this user may not ask";
        assert!(told[0].1.starts_with(text), "{told:?}");
    }

    #[test]
    fn a_lost_gpu_is_one_note_with_all_its_calls() {
        let mut failures = Failures::default();
        for call in ["name", "uuid", "memory"] {
            failures.ask::<()>(call, Whom::Gpu(3), Err(NvmlError::GpuLost));
        }
        for gpu in [0, 1, 2, 4] {
            failures.ask::<()>("peer", Whom::Pair(3, gpu), Err(NvmlError::GpuLost));
        }
        let told = told(failures);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, "GPU 3");
        assert!(told[0].1.starts_with("name, uuid, memory, peer failed with GpuLost: "), "{told:?}");
    }

    #[test]
    fn what_a_device_does_not_have_is_no_failure() {
        let mut failures = Failures::default();
        assert_eq!(failures.ask::<()>("name", Whom::Gpu(0), Err(NvmlError::NotSupported)), None);
        assert_eq!(failures.ask("name", Whom::Gpu(0), Ok(1)), Some(1));
        assert_eq!(told(failures), []);
    }

    #[test]
    fn every_return_code_has_a_name() {
        for (code, name, meaning) in CODES {
            assert_eq!(phrase(&NvmlError::from(code)), format!("{name}: {meaning}"));
        }
        assert_eq!(phrase(&NvmlError::from(31)), "UnexpectedVariant(31): an answer that this program does not know");
        assert!(is_news(&NvmlError::UnexpectedVariant(11)) && !is_news(&NvmlError::from(27)));
        assert!(phrase(&NvmlError::FailedToLoadSymbol("x".into())).starts_with("FunctionNotFound: "));
    }
}
