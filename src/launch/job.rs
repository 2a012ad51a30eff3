//! Whether this process is a rank of a job, from what launchers leave in the environment.

use std::env;

/// Who started the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun` of Open MPI
    OpenMpi,
    /// `mpiexec` of MPICH, Intel MPI or MVAPICH
    Hydra,
    /// `srun`
    Slurm,
    /// anything else that speaks `PMIx`, Flux or PALS
    Other,
}

impl Launcher {
    /// As told to a person.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Hydra => "Hydra (MPICH, Intel MPI)",
            Self::Slurm => "Slurm",
            Self::Other => "PMIx",
        }
    }
}

/// This process as a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub rank: usize,
    /// number of ranks; 0 when the environment does not tell
    pub world: usize,
    /// rank among those of this host
    pub local_rank: Option<usize>,
    pub launcher: Launcher,
}

/// The job this process is a rank of; `None` for a process that somebody started by itself, a shell inside an
/// allocation included.
pub fn detect() -> Option<Job> {
    detect_from(&|name| env::var(name).ok())
}

/// Where each launcher leaves rank, number of ranks and rank on the host.
const TRACES: [(Launcher, &str, &str, &str); 5] = [
    (Launcher::OpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    (Launcher::Hydra, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    (Launcher::Hydra, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    (Launcher::Other, "PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID"),
    (Launcher::Other, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"),
];

fn detect_from(variable: &dyn Fn(&str) -> Option<String>) -> Option<Job> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
    // Steps above are Slurm's own: a batch script and an interactive shell are "steps" too, but no tasks.
    let step = number("SLURM_STEP_ID").is_some_and(|id| id < 0xffff_fff0);
    let tasks = || number("SLURM_STEP_NUM_TASKS").or_else(|| number("SLURM_NTASKS"));
    for (launcher, rank, world, local) in TRACES {
        if let (Some(rank), Some(world)) = (number(rank), number(world)) {
            let by_slurm = launcher == Launcher::Hydra && step && variable("PMI_PORT").is_none() && variable("HYDI_CONTROL_FD").is_none();
            let local_rank = number(local).or_else(|| by_slurm.then(|| number("SLURM_LOCALID"))?);
            return Some(Job { rank, world, local_rank, launcher: if by_slurm { Launcher::Slurm } else { launcher } });
        }
    }
    if let Some(rank) = number("PMIX_RANK") {
        let launcher = if step { Launcher::Slurm } else { Launcher::Other };
        return Some(Job { rank, world: tasks().unwrap_or(0), local_rank: number("SLURM_LOCALID"), launcher });
    }
    match (step, number("SLURM_PROCID"), tasks()) {
        // One task without any PMI is most likely a shell (`srun --pty bash`), and at any rate nothing to share.
        (true, Some(rank), Some(world)) if world > 1 => {
            Some(Job { rank, world, local_rank: number("SLURM_LOCALID"), launcher: Launcher::Slurm })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(environment: &str, expect: Option<(usize, usize, Option<usize>, Launcher)>) {
        let lookup = |name: &str| {
            let pairs = environment.split_whitespace().filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        let job = expect.map(|(rank, world, local_rank, launcher)| Job { rank, world, local_rank, launcher });
        assert_eq!(detect_from(&lookup), job, "{environment}");
    }

    #[test]
    fn each_launcher_is_known_by_its_traces() {
        let open = "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=2";
        check(open, Some((2, 4, Some(1), Launcher::OpenMpi)));
        check("PMI_RANK=0 PMI_SIZE=3 PMI_FD=9 MPI_LOCALRANKID=0", Some((0, 3, Some(0), Launcher::Hydra)));
        check("PMIX_RANK=5 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=1", Some((5, 8, Some(1), Launcher::Slurm)));
        check("SLURM_PROCID=1 SLURM_STEP_ID=3 SLURM_NTASKS=2 SLURM_LOCALID=0", Some((1, 2, Some(0), Launcher::Slurm)));
        check("PMIX_RANK=1", Some((1, 0, None, Launcher::Other)));
        check("PMI_RANK=1 PMI_SIZE=2 SLURM_STEP_ID=0 SLURM_LOCALID=1", Some((1, 2, Some(1), Launcher::Slurm)));
    }

    #[test]
    fn a_shell_in_an_allocation_is_no_rank() {
        check("", None);
        check("SLURM_JOB_ID=7 SLURM_NTASKS=8", None);
        // a batch script, an interactive step, a shell of `srun --pty`
        check("SLURM_PROCID=0 SLURM_NTASKS=8", None);
        check("SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_ID=4294967290", None);
        check("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=8 SLURM_STEP_ID=0", None);
        // and mpirun typed in such a shell is Open MPI's
        check("SLURM_PROCID=0 SLURM_STEP_ID=0 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", Some((1, 2, None, Launcher::OpenMpi)));
    }
}
