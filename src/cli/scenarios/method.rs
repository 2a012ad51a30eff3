//! How the bytes of a scenario go: a mover, and whether they are staged.

use anyhow::{Result, bail};

use super::super::settings;
use crate::sample::{Memory, MoverKind};
use crate::units::{format_size, plain};

/// A column of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method {
    pub mover: MoverKind,
    /// most bytes of a message; `None` for one message from rank to rank
    pub message: Option<u64>,
}

/// As typed: a mover, and `staged` or `window` where that was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Typed {
    mover: MoverKind,
    staged: Option<bool>,
}

/// True if what goes by it is usually staged: both sides take part in each message. A simulated one is, too.
const fn is_staged(mover: MoverKind) -> bool {
    matches!(mover, MoverKind::MpiSendrecv | MoverKind::Nccl | MoverKind::Simulated)
}

impl Method {
    /// Its column's head.
    pub fn name(self) -> String {
        let usual = is_staged(self.mover) == self.message.is_some();
        let how = match (usual, self.message) {
            (true, _) => "",
            (false, Some(_)) => ":staged",
            (false, None) => ":window",
        };
        format!("{}{how}", self.mover.name())
    }

    /// In words.
    pub fn about(self) -> String {
        match self.message {
            Some(most) => format!("{}: staged, messages of {} at most", self.name(), format_size(most)),
            None => format!("{}: a window, one message from rank to rank", self.name()),
        }
    }
}

/// Read a list such as `mpi_sendrecv,mpi_put:staged`.
pub(super) fn parse(text: &str) -> Result<Vec<Typed>> {
    let mut typed = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (name, how) = part.split_once(':').map_or((part, None), |(name, how)| (name, Some(how)));
        let staged = match how {
            None => None,
            Some("staged") => Some(true),
            Some("window") => Some(false),
            Some(other) => bail!("--methods: {:?} in {:?} is not staged or window", plain(other), plain(part)),
        };
        let mover = settings::mover(name).map_err(|error| anyhow::anyhow!("{}", error.to_string().replace("--mover", "--methods")))?;
        let one = Typed { mover, staged };
        if !typed.contains(&one) {
            typed.push(one);
        }
    }
    Ok(typed)
}

/// The methods of a run: those that were typed, or each mover of the engine for that memory as it is usually used; staged ones first.
pub(super) fn chosen(typed: Option<&[Typed]>, movers: &[MoverKind], memory: Memory, message: u64) -> Result<Vec<Method>> {
    let movers: Vec<MoverKind> = movers.iter().copied().filter(|mover| mover.carries(memory)).collect();
    let method = |typed: &Typed| Method { mover: typed.mover, message: typed.staged.unwrap_or(is_staged(typed.mover)).then_some(message) };
    let Some(typed) = typed else {
        let mut all: Vec<Method> = movers.into_iter().map(|mover| method(&Typed { mover, staged: None })).collect();
        all.sort_by_key(|method| method.message.is_none());
        return Ok(all);
    };
    if let Some(strange) = typed.iter().find(|typed| !movers.contains(&typed.mover)) {
        let names: Vec<_> = movers.iter().map(|mover| mover.name()).collect();
        bail!("--methods: {}: of memory {} these ranks have {}", strange.mover.name(), memory.name(), names.join(", "));
    }
    Ok(typed.iter().map(method).collect())
}

/// Those that a table of staging budgets has: the staged ones, else all, as if they were.
pub(super) fn staged(methods: &[Method], message: u64) -> Vec<Method> {
    let own: Vec<Method> = methods.iter().copied().filter(|method| method.message.is_some()).collect();
    if own.is_empty() { methods.iter().map(|method| Method { message: Some(message), ..*method }).collect() } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn movers_are_staged_or_windows_as_they_are_used_unless_somebody_says_otherwise() {
        let movers = [MoverKind::MpiPut, MoverKind::MpiSendrecv];
        let names = |typed: Option<&str>| {
            let typed = typed.map(|text| parse(text).unwrap());
            chosen(typed.as_deref(), &movers, Memory::Host, 8 * MIB).unwrap().into_iter().map(Method::name).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["mpi_sendrecv", "mpi_put"], "staged first");
        assert_eq!(names(Some("mpi_put,mpi_put:staged, mpi_sendrecv:window")), ["mpi_put", "mpi_put:staged", "mpi_sendrecv:window"]);
        let memcpy = chosen(None, &[MoverKind::Memcpy, MoverKind::Nccl], Memory::Host, 8 * MIB).unwrap();
        assert_eq!(memcpy, [Method { mover: MoverKind::Memcpy, message: None }]);
        assert_eq!(staged(&memcpy, MIB), [Method { mover: MoverKind::Memcpy, message: Some(MIB) }]);
        assert_eq!(staged(&chosen(None, &movers, Memory::Host, MIB).unwrap(), MIB).len(), 1);
        let cuda = chosen(None, crate::sample::MPI_MOVERS, Memory::Cuda, MIB).unwrap();
        assert_eq!(staged(&cuda, MIB), [Method { mover: MoverKind::Nccl, message: Some(MIB) }]);
        let names: Vec<_> = cuda.into_iter().map(Method::name).collect();
        assert_eq!(names, ["nccl", "cuda_ipc_pull", "cuda_ipc_push"], "one-sided puts of NCCL run no plans");
    }

    #[test]
    fn what_is_no_method_here_is_told_with_those_that_are() {
        let refused = |text: &str| {
            let movers = [MoverKind::MpiPut, MoverKind::Nccl];
            let typed = parse(text).and_then(|typed| chosen(Some(&typed), &movers, Memory::Host, 1));
            typed.unwrap_err().to_string()
        };
        assert!(refused("mpi_send").contains("--methods") && refused("mpi_send").contains("mpi_sendrecv"));
        assert!(refused("mpi_put:fast").contains("staged or window"));
        assert_eq!(refused("memcpy"), "--methods: memcpy: of memory host these ranks have mpi_put");
        assert!(refused("nccl").contains("nccl: of memory host"));
    }
}
